// SPDX-License-Identifier: Apache-2.0
// What is known of one target, and how it changes: by the JSON of the object and by replies of /scale.
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/must.h"
#include "k8s/cache/target_store_private.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/scale.h"

bool target_version_is_older(const char *a, const char *b)
{
	size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
	if (a[n] || b[m] || n == 0 || m == 0)
		return false;
	return n != m ? n < m : memcmp(a, b, n) < 0;
}

// Returns whether the selector has changed.
static bool set_selector(struct target_record *r, const char *selector)
{
	if (strcmp(r->selector ? r->selector : "", selector) == 0)
		return false;
	free(r->selector);
	r->selector = selector[0] ? must_alloc(strdup(selector)) : NULL;
	return true;
}

static bool wants_pods(const struct target_record *r)
{
	return r->pods_refs > 0 || !r->kind->workload->is_pod;
}

void target_follow_pods(struct target_record *r)
{
	struct pod_set *old = r->pods;
	bool has_pods = wants_pods(r) && r->is_known && r->exists && r->selector;
	if (has_pods) {
		char namespace_name[TARGET_NAME_BYTES];
		snprintf(namespace_name, sizeof namespace_name, "%.*s", (int)strcspn(r->key, "/"), r->key);
		r->pods = pod_store_acquire(r->kind->store->pods, namespace_name, r->selector, r->kind->workload, NULL);
	} else {
		r->pods = NULL;
	}
	pod_set_release(old); // after the new one, which is usually the same
}

void target_set_scale_unknown(struct target_record *r, int64_t for_ms)
{
	r->is_known = false;
	r->scale_after_ms = for_ms ? clock_mono_ms(k8s_client_clock(r->kind->store->options.client)) + for_ms : 0;
}

static struct scale_ref ref_of(const struct target_record *r)
{
	const struct target_kind *k = r->kind;
	return (struct scale_ref){k->api_version, k->name, "", strchr(r->key, '/') + 1, k->path};
}

// Reads what the object itself reports about ready replicas. Most kinds leave out a 0.
static void note_ready(struct target_record *r, const char *json, size_t len)
{
	const struct scale_ref ref = ref_of(r);
	r->ready_replicas = scale_path_ready(&ref, (struct json_span){json, len}, &r->is_ready_stale);
	r->reports_ready |= r->ready_replicas >= 0;
	if (r->reports_ready && r->ready_replicas < 0)
		r->ready_replicas = 0;
}

// For an object that does not contain its scale: /scale is read when the target is next requested.
static void note_version(struct target_record *r, const char *json, size_t len)
{
	struct target_fields f;
	if (target_decode_metadata(json, len, &f, NULL) < 0 || strlen(f.resource_version) >= TARGET_VERSION_BYTES) {
		target_set_scale_unknown(r, TARGET_RETRY_MS);
		return;
	}
	bool is_same = strcmp(f.resource_version, r->resource_version) == 0;
	memcpy(r->uid, f.uid, sizeof r->uid);
	r->generation = f.generation;
	note_ready(r, json, len);
	if (r->is_known && r->exists &&
	    (is_same || (r->is_noted && target_version_is_older(f.resource_version, r->resource_version))))
		return; // /scale was read or written in this version or a later one
	r->is_noted = false;
	target_set_scale_unknown(r, 0);
}

// Decodes an object that has its replicas at the path of the kind. Returns as target_decode().
static int decode_at_path(struct target_record *r, const char *json, size_t len, struct target_fields *f)
{
	const struct scale_ref ref = ref_of(r);
	struct scale s;
	if (target_decode_metadata(json, len, f, NULL) < 0 ||
	    scale_path_read(&ref, (struct json_span){json, len}, &s, NULL) < 0)
		return -1;
	note_ready(r, json, len);
	f->spec_replicas = s.spec_replicas;
	f->status_replicas = s.status_replicas;
	f->ready_replicas = r->ready_replicas;
	memcpy(f->selector, s.selector, sizeof f->selector);
	return 0;
}

void target_apply_object(struct target_record *r, const char *json, size_t len)
{
	struct target_fields f;
	if (!r->kind->contains_scale) {
		note_version(r, json, len);
		return;
	}
	if ((r->kind->path ? decode_at_path(r, json, len, &f) : target_decode(json, len, &f, NULL)) < 0 ||
	    strlen(f.resource_version) >= TARGET_VERSION_BYTES) {
		(void)informer_refetch(&r->item, TARGET_RETRY_MS); // until then each tick reads /scale and reports why
		return;
	}
	r->is_known = r->exists = true;
	r->spec_replicas = f.spec_replicas;
	r->status_replicas = f.status_replicas;
	r->ready_replicas = f.ready_replicas;
	r->generation = f.generation;
	memcpy(r->resource_version, f.resource_version, TARGET_VERSION_BYTES);
	memcpy(r->uid, f.uid, sizeof r->uid);
	if (set_selector(r, f.selector) || (wants_pods(r) && !r->pods))
		target_follow_pods(r);
}

void target_apply_scale(struct target_record *r, const struct scale *scale)
{
	if (strlen(scale->resource_version) >= TARGET_VERSION_BYTES) {
		target_set_scale_unknown(r, TARGET_RETRY_MS);
		return;
	}
	char latest[TARGET_VERSION_BYTES];
	snprintf(latest, sizeof latest, "%llu", (unsigned long long)r->item.version);
	if (r->item.version && target_version_is_older(scale->resource_version, latest))
		return;
	r->is_noted = true; // events that arrive next may be older
	r->is_known = r->exists = true;
	r->spec_replicas = scale->spec_replicas;
	r->status_replicas = scale->status_replicas;
	memcpy(r->resource_version, scale->resource_version, TARGET_VERSION_BYTES);
	if (set_selector(r, scale->selector) || !r->pods)
		target_follow_pods(r);
}

void target_set_absent(struct target_record *r)
{
	r->is_known = true;
	r->exists = r->is_noted = r->reports_ready = false;
	target_follow_pods(r);
}

void target_store_wake(struct target_store *s)
{
	if (s->waiters)
		event_active(s->wake, EV_TIMEOUT, 0);
}
