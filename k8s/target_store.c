// SPDX-License-Identifier: Apache-2.0
#include "k8s/target_store.h"

#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/http_client.h"
#include "k8s/k8s_client.h"
#include "k8s/target_store_private.h"
#include "k8s/watch.h"

#define KEY_BYTES (2 * TARGET_NAME_BYTES + 16)

static int64_t mono_ms(const struct target_store *s)
{
	return clock_mono_ms(k8s_client_clock(s->options.client));
}

// ---- keys ----

static size_t format_key(char key[KEY_BYTES], const struct target_kind *kind, const char *namespace_name,
                         const char *name)
{
	int n = snprintf(key, KEY_BYTES, "%d/%s/%s", kind->number, namespace_name, name);
	return n > 0 && n < KEY_BYTES ? (size_t)n : 0;
}

struct target_record *target_find(const struct target_store *s, const struct target_kind *kind,
                                  const char *namespace_name, const char *name)
{
	char key[KEY_BYTES];
	struct target_record *r = NULL;
	size_t len = format_key(key, kind, namespace_name, name);
	if (len)
		HASH_FIND(hh, s->records, key, len, r);
	return r;
}

static struct target_record *find_ref(const struct target_store *s, const struct scale_ref *ref)
{
	const struct target_kind *kind = target_kind_find(s, ref);
	return kind ? target_find(s, kind, ref->namespace_name, ref->name) : NULL;
}

// ---- what is known of a target ----

// Which of two versions is older? Only whole numbers tell; for others it is never `a`.
static bool is_older(const char *a, const char *b)
{
	size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
	if (a[n] || b[m] || n == 0 || m == 0)
		return false;
	return n != m ? n < m : memcmp(a, b, n) < 0;
}

// True when it is another one than before.
static bool set_selector(struct target_record *r, const char *selector)
{
	if (strcmp(r->selector ? r->selector : "", selector) == 0)
		return false;
	free(r->selector);
	r->selector = selector[0] ? strdup(selector) : NULL;
	if (selector[0] && !r->selector)
		abort(); // nothing sensible goes on without memory; the supervisor restarts us
	return true;
}

static bool wants_pods(const struct target_record *r)
{
	return r->pods_refs > 0 || !r->kind->tells_scale;
}

// Its pods are those of its selector as it is now. Called whenever selector, existence or the wish for them changed.
static void follow_pods(struct target_record *r)
{
	struct pod_set *old = r->pods;
	bool has_pods = wants_pods(r) && r->is_known && r->exists && r->selector;
	if (has_pods) {
		char namespace_name[TARGET_NAME_BYTES];
		const char *begin = strchr(r->key, '/') + 1, *end = strchr(begin, '/'); // as format_key() writes it
		snprintf(namespace_name, sizeof namespace_name, "%.*s", (int)(end - begin), begin);
		r->pods = pod_store_want(r->store->pods, namespace_name, r->selector, NULL);
	} else {
		r->pods = NULL;
	}
	pod_set_unwant(old); // after the new one: it is the same one, mostly
}

void target_set_unknown(struct target_record *r, int64_t for_ms)
{
	r->is_known = false;
	r->fetch_after_ms = for_ms ? mono_ms(r->store) + for_ms : 0;
}

// An object that does not tell its scale: /scale is read when somebody wants to know.
static void note_version(struct target_record *r, const char *json, size_t len)
{
	struct target_fields f;
	if (target_decode_metadata(json, len, &f, NULL) < 0 || strlen(f.resource_version) >= TARGET_VERSION_BYTES) {
		target_set_unknown(r, TARGET_RETRY_MS);
		return;
	}
	bool is_same = strcmp(f.resource_version, r->resource_version) == 0;
	memcpy(r->object_version, f.resource_version, TARGET_VERSION_BYTES);
	memcpy(r->uid, f.uid, sizeof r->uid);
	r->generation = f.generation;
	if (r->is_known && r->exists && (is_same || (r->is_noted && is_older(f.resource_version, r->resource_version))))
		return; // /scale was read, or written, as of then or later
	r->is_noted = false;
	target_set_unknown(r, 0);
}

void target_apply(struct target_record *r, const char *json, size_t len)
{
	struct target_fields f;
	if (!r->kind->tells_scale) {
		note_version(r, json, len);
		return;
	}
	if (target_decode(json, len, &f, NULL) < 0 || strlen(f.resource_version) >= TARGET_VERSION_BYTES) {
		target_set_unknown(r, TARGET_RETRY_MS); // asked for by GET, which tells what is wrong
		return;
	}
	if (r->is_known && r->is_noted && is_older(f.resource_version, r->resource_version))
		return; // from before our write
	r->is_noted = false;
	r->is_known = r->exists = true;
	r->spec_replicas = f.spec_replicas;
	r->status_replicas = f.status_replicas;
	r->ready_replicas = f.ready_replicas;
	r->generation = f.generation;
	memcpy(r->resource_version, f.resource_version, TARGET_VERSION_BYTES);
	memcpy(r->uid, f.uid, sizeof r->uid);
	if (set_selector(r, f.selector) || (wants_pods(r) && !r->pods))
		follow_pods(r);
}

void target_apply_scale(struct target_record *r, const struct scale *scale)
{
	if (strlen(scale->resource_version) >= TARGET_VERSION_BYTES) {
		target_set_unknown(r, TARGET_RETRY_MS);
		return;
	}
	if (is_older(scale->resource_version, r->object_version))
		return;
	r->is_noted = true; // events on their way may be older
	r->is_known = r->exists = true;
	r->spec_replicas = scale->spec_replicas;
	r->status_replicas = scale->status_replicas;
	r->ready_replicas = -1;
	memcpy(r->resource_version, scale->resource_version, TARGET_VERSION_BYTES);
	if (set_selector(r, scale->selector) || !r->pods)
		follow_pods(r);
}

void target_set_absent(struct target_record *r)
{
	r->is_known = true;
	r->exists = r->is_noted = false;
	follow_pods(r);
}

// ---- waiting ----

static enum target_state state_of(const struct target_record *r)
{
	if (!r || !r->watch || r->watch->is_broken || r->store->is_stopped)
		return TARGET_UNWATCHED;
	if (r->is_known && r->pods && pod_set_state(r->pods) == POD_SET_UNSYNCED)
		return TARGET_UNSYNCED;
	if (r->is_known)
		return r->exists ? TARGET_FOUND : TARGET_ABSENT;
	return r->watch->is_synced && !r->fetch ? TARGET_UNWATCHED : TARGET_UNSYNCED;
}

void target_store_wake(struct target_store *s)
{
	if (s->waiters)
		event_active(s->wake, EV_TIMEOUT, 0);
}

static void arm_wake(struct target_store *s)
{
	int64_t left = s->waiters ? s->waiters->until_mono_ms - mono_ms(s) : 0; // the first waits longest
	left = left > 0 ? left : 1;
	struct timeval tv = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
	if (s->waiters)
		event_add(s->wake, &tv);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct target_store *s = arg;
	int64_t now = mono_ms(s);
	struct target_waiter *w;
	do { // from the start after each call: it may have changed the list
		DL_FOREACH(s->waiters, w)
		{
			if (w->until_mono_ms <= now || state_of(w->record) != TARGET_UNSYNCED)
				break;
		}
		if (w) {
			DL_DELETE(s->waiters, w);
			w->record = NULL;
			w->fn(w->arg);
		}
	} while (w);
	arm_wake(s);
}

void target_store_wait(struct target_store *s, const struct scale_ref *ref, struct target_waiter *w,
                       void (*fn)(void *arg), void *arg)
{
	*w = (struct target_waiter){
	        .record = find_ref(s, ref), .until_mono_ms = mono_ms(s) + TARGET_WAIT_MAX_MS, .fn = fn, .arg = arg};
	DL_APPEND(s->waiters, w);
	if (state_of(w->record) != TARGET_UNSYNCED)
		target_store_wake(s);
	else if (s->waiters == w)
		arm_wake(s);
}

void target_store_cancel_wait(struct target_store *s, struct target_waiter *w)
{
	struct target_waiter *each;
	DL_FOREACH(s->waiters, each)
	{
		if (each == w) {
			DL_DELETE(s->waiters, w);
			return;
		}
	}
}

// ---- the public face ----

static void want_pods(struct target_record *r, int change)
{
	r->pods_refs += change;
	if (change)
		follow_pods(r);
}

// Of a kind that the client did not know when the target was wanted: watched from when it does.
static int join_watch(struct target_record *r, const char *namespace_name, struct err *e)
{
	if (r->watch || r->store->is_stopped || !target_kind_is_known(r->store, r->kind))
		return 0;
	r->watch = target_watch_of(r->store, r->kind, namespace_name, e);
	if (!r->watch)
		return -1;
	DL_APPEND(r->watch->records, r);
	return 0;
}

static void drop_if_unused(struct target_store *s, struct target_kind *kind)
{
	if (kind->n_records == 0 && !kind->tells_scale)
		target_kind_drop(s, kind);
}

int target_store_want(struct target_store *s, const struct scale_ref *ref, bool with_pods, struct err *e)
{
	char key[KEY_BYTES];
	if (s->is_stopped || !scale_name_is_valid(ref->namespace_name) || !scale_name_is_valid(ref->name))
		return 0;
	struct target_kind *kind = target_kind_find(s, ref);
	if (!kind)
		kind = target_kind_add(s, ref->api_version, ref->kind);
	if (!kind)
		return 0;
	struct target_record *r = target_find(s, kind, ref->namespace_name, ref->name);
	if (r) {
		r->refs++;
		want_pods(r, with_pods);
		return 0;
	}
	size_t len = format_key(key, kind, ref->namespace_name, ref->name);
	r = calloc(1, sizeof *r + len + 1);
	if (!r) {
		drop_if_unused(s, kind);
		return err_set(e, ERR_INTERNAL, "out of memory");
	}
	memcpy(r->key, key, len);
	r->refs = 1;
	r->store = s;
	r->kind = kind;
	if (join_watch(r, ref->namespace_name, e) < 0) {
		free(r);
		drop_if_unused(s, kind);
		return -1;
	}
	kind->n_records++;
	HASH_ADD_KEYPTR(hh, s->records, r->key, len, r);
	want_pods(r, with_pods);
	return 0;
}

static void record_free(struct target_record *r)
{
	struct target_store *s = r->store;
	struct target_waiter *w;
	DL_FOREACH(s->waiters, w)
	{
		if (w->record == r)
			w->record = NULL; // no longer wanted: it is called soon
	}
	target_store_wake(s);
	if (r->fetch)
		k8s_call_cancel(r->fetch);
	pod_set_unwant(r->pods);
	HASH_DELETE(hh, s->records, r);
	r->kind->n_records--;
	if (r->watch)
		DL_DELETE(r->watch->records, r);
	free(r->selector);
	free(r);
}

void target_store_unwant(struct target_store *s, const struct scale_ref *ref, bool with_pods)
{
	struct target_record *r = find_ref(s, ref);
	if (!r)
		return;
	want_pods(r, -(int)with_pods);
	if (--r->refs > 0)
		return;
	struct target_watch *w = r->watch;
	struct target_kind *kind = r->kind;
	record_free(r);
	if (w && !w->records)
		target_watch_free(w);
	drop_if_unused(s, kind);
}

void target_store_get(struct target_store *s, const struct scale_ref *ref, struct target_view *ret_view)
{
	struct target_record *r = find_ref(s, ref);
	*ret_view = (struct target_view){.why = "this kind is not watched"};
	if (!r || join_watch(r, ref->namespace_name, NULL) < 0 || !r->watch)
		return;
	if (!r->is_known && !r->fetch && r->watch->is_synced && !r->watch->is_broken && !s->is_stopped &&
	    mono_ms(s) >= r->fetch_after_ms)
		target_fetch(r, ref);
	ret_view->state = state_of(r);
	ret_view->why = r->watch->is_broken ? r->watch->why : "it could not be read";
	ret_view->spec_replicas = r->spec_replicas;
	ret_view->status_replicas = r->status_replicas;
	ret_view->ready_replicas = r->ready_replicas;
	ret_view->generation = r->generation;
	ret_view->resource_version = r->resource_version;
	ret_view->selector = r->selector ? r->selector : "";
	ret_view->uid = r->uid;
	ret_view->pods = r->pods && pod_set_state(r->pods) == POD_SET_KNOWN ? r->pods : NULL;
}

void target_store_note_scaled(struct target_store *s, const struct scale_ref *ref, const struct scale *scale)
{
	struct target_record *r = find_ref(s, ref);
	if (!r || !r->is_known || !r->exists || strlen(scale->resource_version) >= TARGET_VERSION_BYTES ||
	    !is_older(r->resource_version, scale->resource_version))
		return; // the event came first
	r->is_noted = true;
	r->spec_replicas = scale->spec_replicas;
	memcpy(r->resource_version, scale->resource_version, TARGET_VERSION_BYTES);
}

static void on_pods_change(void *arg)
{
	target_store_wake(arg);
}

static void on_pods_error(void *arg, const char *what, const struct err *error)
{
	const struct target_store_options *o = &((struct target_store *)arg)->options;
	if (o->on_error)
		o->on_error(o->arg, what, error);
}

struct target_store *target_store_new(const struct target_store_options *options, struct err *e)
{
	struct target_store *s = calloc(1, sizeof *s);
	if (!s || !(s->wake = evtimer_new(k8s_client_loop(options->client), on_wake, s))) {
		free(s);
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	s->options = *options;
	s->pods = pod_store_new(
	        &(struct pod_store_options){
	                .client = options->client, .on_error = on_pods_error, .on_change = on_pods_change, .arg = s},
	        e);
	if (s->pods && target_kinds_init(s, e) == 0)
		return s;
	target_store_free(s);
	return NULL;
}

void target_store_stop(struct target_store *s)
{
	struct target_waiter *w;
	s->is_stopped = true;
	while ((w = s->waiters)) {
		DL_DELETE(s->waiters, w);
		w->fn(w->arg);
	}
	struct target_record *r, *next;
	HASH_ITER(hh, s->records, r, next)
	{
		record_free(r);
	}
	while (s->watches)
		target_watch_free(s->watches);
}

void target_store_free(struct target_store *s)
{
	if (!s)
		return;
	assert(!s->waiters);
	target_store_stop(s);
	pod_store_free(s->pods);
	target_kinds_done(s);
	event_free(s->wake);
	free(s);
}

void target_store_get_stats(const struct target_store *s, struct target_store_stats *ret_stats)
{
	const struct target_watch *w;
	*ret_stats = s->stats;
	ret_stats->targets = HASH_COUNT(s->records);
	DL_FOREACH(s->watches, w)
	{
		struct k8s_watch_stats one;
		k8s_watch_get_stats(w->watch, &one);
		ret_stats->watches++;
		ret_stats->unsynced += !w->is_synced;
		ret_stats->broken += w->is_broken;
		if (w->is_broken)
			ret_stats->broken_why = w->why;
		ret_stats->lists += one.lists;
		ret_stats->streams += one.streams;
		ret_stats->events += one.events;
		ret_stats->gone += one.gone;
	}
}
