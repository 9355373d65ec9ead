// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/target_store.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <utlist.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/hash_table.h"
#include "base/http/http_client.h"
#include "base/timer.h"
#include "k8s/cache/informer.h"
#include "k8s/cache/pod_store.h"
#include "k8s/cache/target_decode.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"

#define TARGET_VERSION_BYTES 32 // etcd uses up to 20 digits; a target with a longer version is read by GET

struct target_kind {
	int number; // index in the store
	char api_version[DISCOVERY_GROUP_BYTES], name[DISCOVERY_NAME_BYTES];
	char plural[DISCOVERY_NAME_BYTES]; // "" until discovery has found it
	char *path;                        // of the replicas in the object; NULL: none
	const struct workload_kind *workload;
	bool contains_scale; // the objects do; otherwise /scale is read after a change
	struct target_store *store;
	struct informer *informer;     // NULL until the client knows the plural
	struct informer_item *waiting; // hash: records without an informer, see join_informer()
	int n_records;
};

// Kept small: there may be 20,000 records.
struct target_record {
	struct informer_item item; // first; .space NULL: in kind->waiting
	struct target_kind *kind;
	struct k8s_call *scale_call; // reads /scale, for a kind whose objects do not contain it; NULL: none
	int64_t scale_after_ms;      // no request before this time; 0: at once
	int refs, pods_refs;
	int32_t spec_replicas, status_replicas, ready_replicas; // status, ready: -1: unknown
	bool is_known, exists;
	bool reports_ready, is_ready_stale; // ready_replicas: the object has reported some; see target_view
	bool is_noted; // for a kind whose objects do not contain the scale: the version is that of /scale or of our own
	               // write
	int64_t generation;
	char resource_version[TARGET_VERSION_BYTES], uid[TARGET_UID_BYTES];
	char *selector;       // NULL = ""
	struct pod_set *pods; // NULL: not wanted, or not available
	char key[];           // namespace, '/', name
};

struct target_store {
	struct target_store_options options;
	struct target_kind *kinds[TARGET_KINDS_MAX]; // NULL: unused
	size_t n_kinds;                              // used part of the array, with its NULLs
	struct target_waiter *waiters;
	struct event wake;
	struct pod_store *pods;
	bool is_stopped;
	uint64_t fetches; // of /scale
};

static int64_t mono_ms(const struct target_store *s)
{
	return clock_mono_ms(s->options.client->options.clock);
}

// ---- records ----

// Only versions that are numbers can be compared; for others, false.
static bool version_is_older(const char *a, uint64_t than)
{
	uint64_t version = k8s_version_number(a);
	return version && version < than;
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

// Acquires the pods of the current selector, after a change of selector, existence or wants_pods.
static void follow_pods(struct target_record *r)
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

// /scale is read when the target is next requested, but not within for_ms.
static void set_scale_unknown(struct target_record *r, int64_t for_ms)
{
	r->is_known = false;
	r->scale_after_ms = for_ms ? mono_ms(r->kind->store) + for_ms : 0;
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
		set_scale_unknown(r, TARGET_RETRY_MS);
		return;
	}
	bool is_same = strcmp(f.resource_version, r->resource_version) == 0;
	memcpy(r->uid, f.uid, sizeof r->uid);
	r->generation = f.generation;
	note_ready(r, json, len);
	if (r->is_known && r->exists &&
	    (is_same || (r->is_noted && version_is_older(f.resource_version, k8s_version_number(r->resource_version)))))
		return; // /scale was read or written in this version or a later one
	r->is_noted = false;
	set_scale_unknown(r, 0);
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

static void apply_object(struct target_record *r, const char *json, size_t len)
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
		follow_pods(r);
}

// Ignored when an event has reported a newer version of the object since; then /scale is read again.
static void apply_scale(struct target_record *r, const struct scale *scale)
{
	if (strlen(scale->resource_version) >= TARGET_VERSION_BYTES) {
		set_scale_unknown(r, TARGET_RETRY_MS);
		return;
	}
	if (version_is_older(scale->resource_version, r->item.version))
		return;
	r->is_noted = true; // events that arrive next may be older
	r->is_known = r->exists = true;
	r->spec_replicas = scale->spec_replicas;
	r->status_replicas = scale->status_replicas;
	memcpy(r->resource_version, scale->resource_version, TARGET_VERSION_BYTES);
	if (set_selector(r, scale->selector) || !r->pods)
		follow_pods(r);
}

static void set_absent(struct target_record *r)
{
	r->is_known = true;
	r->exists = r->is_noted = r->reports_ready = false;
	follow_pods(r);
}

// Lets the loop call the waiters whose target is no longer TARGET_UNSYNCED.
static void wake_waiters(void *arg)
{
	struct target_store *s = arg;
	if (s->waiters)
		event_active(&s->wake, EV_TIMEOUT, 0);
}

// ---- callbacks of the informer ----

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	if (item)
		apply_object((struct target_record *)item, json, len);
}

static void on_absent(void *arg, struct informer_item *item)
{
	set_absent((struct target_record *)item);
}

static void on_unknown(void *arg, struct informer_item *item)
{
	((struct target_record *)item)->is_known = false;
}

static void on_change(void *arg)
{
	wake_waiters(((struct target_kind *)arg)->store);
}

static void on_error(void *arg, const char *what, const struct err *error)
{
	const struct target_store_options *o = &((const struct target_kind *)arg)->store->options;
	if (o->on_error)
		o->on_error(o->arg, what, error);
}

static const struct informer_callbacks informer_callbacks = {
        .on_object = on_object,
        .on_absent = on_absent,
        .on_unknown = on_unknown,
        .on_change = on_change,
        .on_error = on_error,
};

// ---- kinds ----

static struct target_kind *find_kind(const struct target_store *s, const struct scale_ref *ref)
{
	for (size_t i = 0; i < s->n_kinds; i++) {
		struct target_kind *k = s->kinds[i];
		if (k && strcmp(k->name, ref->kind) == 0 && strcmp(k->api_version, ref->api_version) == 0 &&
		    strcmp(k->path ? k->path : "", ref->path ? ref->path : "") == 0)
			return k;
	}
	return NULL;
}

// Returns NULL above TARGET_KINDS_MAX, for a name that is too long, and when memory is exhausted.
static struct target_kind *add_kind(struct target_store *s, const char *api_version, const char *name, const char *path)
{
	size_t version_size = strlen(api_version) + 1, name_size = strlen(name) + 1;
	size_t at = 0;
	while (at < s->n_kinds && s->kinds[at])
		at++;
	if (at == TARGET_KINDS_MAX || version_size > DISCOVERY_GROUP_BYTES || name_size > DISCOVERY_NAME_BYTES)
		return NULL;
	struct target_kind *k = calloc(1, sizeof *k);
	if (!k || (path && !(k->path = strdup(path)))) {
		free(k);
		return NULL;
	}
	memcpy(k->api_version, api_version, version_size);
	memcpy(k->name, name, name_size);
	k->store = s;
	k->workload = workload_kind_find(api_version, name, path);
	k->contains_scale = path || k->workload->plural;
	k->number = (int)at;
	s->kinds[at] = k;
	s->n_kinds += at == s->n_kinds;
	return k;
}

static void drop_kind(struct target_store *s, struct target_kind *k)
{
	assert(k->n_records == 0);
	informer_free(k->informer);
	s->kinds[k->number] = NULL; // for the next one
	free(k->path);
	free(k);
}

static bool has_plural(const struct target_store *s, struct target_kind *k)
{
	if (!k->plural[0]) {
		const struct k8s_resource *resource =
		        discovery_find(s->options.client->discovery, k->api_version, k->name, !k->path);
		if (resource && resource->is_namespaced)
			snprintf(k->plural, sizeof k->plural, "%s", resource->plural);
	}
	return k->plural[0] != '\0';
}

// Created once the client knows the URL of the kind; NULL before. Returns NULL and *e when memory is exhausted.
static struct informer *informer_of(struct target_kind *k, struct err *e)
{
	char path[DISCOVERY_GROUP_BYTES + 8];
	err_clear(e);
	if (k->informer || !has_plural(k->store, k))
		return k->informer;
	snprintf(path, sizeof path, "%s%s", strchr(k->api_version, '/') ? "/apis/" : "/api/", k->api_version);
	k->informer = informer_new(&(struct informer_options){.client = k->store->options.client,
	                                                      .group_path = path,
	                                                      .plural = k->plural,
	                                                      .own_watches = TARGET_NAMESPACES_MAX,
	                                                      .callbacks = informer_callbacks,
	                                                      .arg = k},
	                           e);
	return k->informer;
}

static int add_built_in_kinds(struct target_store *s, struct err *e)
{
	const struct workload_kind *row;
	for (size_t i = 0; (row = workload_kind_at(i)); i++) {
		if (!row->plural)
			continue;
		struct target_kind *k = add_kind(s, "apps/v1", row->kind, NULL);
		if (!k)
			return err_no_memory(e);
		snprintf(k->plural, sizeof k->plural, "%s", row->plural);
	}
	return 0;
}

static struct target_record *find_ref(const struct target_store *s, const struct scale_ref *ref)
{
	char key[INFORMER_KEY_BYTES];
	const struct target_kind *kind = find_kind(s, ref);
	struct informer_item *item =
	        kind && kind->informer ? informer_get(kind->informer, ref->namespace_name, ref->name) : NULL;
	if (kind && kind->waiting && !item) {
		snprintf(key, sizeof key, "%s/%s", ref->namespace_name, ref->name);
		HASH_FIND_STR(kind->waiting, key, item);
	}
	return (struct target_record *)item;
}

// ---- /scale ----

// For a target whose object does not contain its scale, once after each change of the object.
static void on_scale(void *arg, const struct http_response *response, const struct err *error)
{
	struct target_record *r = arg;
	struct scale scale;
	r->scale_call = NULL;
	if (error && error->kind == ERR_CANCELED)
		return; // no longer wanted, or shutdown
	if (r->is_known)
		; // deleted in between
	else if (error && error->code == 404)
		set_absent(r);
	else if (error || scale_decode(response->body, response->body_len, &scale, NULL) < 0)
		set_scale_unknown(r, TARGET_RETRY_MS);
	else
		apply_scale(r, &scale);
	wake_waiters(r->kind->store);
}

static void fetch_scale(struct target_record *r, const struct scale_ref *ref)
{
	struct target_store *s = r->kind->store;
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "%s%s/namespaces/%s/%s/%s/scale", strchr(r->kind->api_version, '/') ? "/apis/" : "/api/",
	           r->kind->api_version, ref->namespace_name, r->kind->plural, ref->name);
	const struct k8s_request_options o = {.method = "GET", .path = buf_str(&path), .done = on_scale, .arg = r};
	s->fetches++;
	if (path.failed || k8s_request_with(s->options.client, &o, &r->scale_call, NULL) < 0) {
		r->scale_call = NULL;
		set_scale_unknown(r, TARGET_RETRY_MS);
	}
	buf_done(&path);
}

// ---- waiting ----

static struct informer_state watch_of(const struct target_record *r)
{
	return informer_get_state(r->kind->informer, &r->item);
}

static enum target_state state_of(const struct target_record *r)
{
	if (!r || !r->item.space || r->kind->store->is_stopped)
		return TARGET_UNWATCHED;
	const struct informer_state watch = watch_of(r);
	if (watch.broken > 0)
		return TARGET_UNWATCHED;
	if (r->is_known && r->pods && pod_set_state(r->pods) == POD_SET_UNSYNCED)
		return TARGET_UNSYNCED;
	if (r->is_known)
		return r->exists ? TARGET_FOUND : TARGET_ABSENT;
	bool is_coming = r->item.fetch || r->scale_call || watch.unsynced > 0;
	return is_coming ? TARGET_UNSYNCED : TARGET_UNWATCHED;
}

static void arm_wake(struct target_store *s)
{
	int64_t left = s->waiters ? s->waiters->until_mono_ms - mono_ms(s) : 0; // the first waits longest
	if (s->waiters)
		timer_start(&s->wake, left > 0 ? left : 1);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct target_store *s = arg;
	int64_t now = mono_ms(s);
	struct target_waiter *w;
	do { // from the start after each call, which may change the list
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
		wake_waiters(s);
	else if (s->waiters == w)
		arm_wake(s);
}

// ---- public functions ----

static void acquire_pods(struct target_record *r, int change)
{
	r->pods_refs += change;
	if (change)
		follow_pods(r);
}

static void wait_for_kind(struct target_record *r)
{
	HASH_ADD_KEYPTR(hh, r->kind->waiting, r->key, strlen(r->key), &r->item);
}

// A target of a kind that discovery had not found when the target was wanted joins the informer later.
static int join_informer(struct target_record *r, struct err *e)
{
	if (r->item.space || r->kind->store->is_stopped)
		return 0;
	struct err cause = {0};
	struct informer *informer = informer_of(r->kind, &cause);
	if (informer) {
		HASH_DELETE(hh, r->kind->waiting, &r->item);
		r->item = (struct informer_item){0};
		if (informer_put(informer, &r->item, r->key, NULL, &cause) < 0)
			wait_for_kind(r);
	}
	// A kind that cannot be watched is read at every tick.
	return cause.kind == ERR_INTERNAL ? err_set(e, cause.kind, "%s", cause.msg) : 0;
}

static void drop_if_unused(struct target_store *s, struct target_kind *kind)
{
	if (kind->n_records == 0 && !kind->contains_scale)
		drop_kind(s, kind);
}

static void record_free(struct target_record *r)
{
	struct target_store *s = r->kind->store;
	struct target_waiter *w;
	DL_FOREACH(s->waiters, w)
	{
		if (w->record == r)
			w->record = NULL; // no longer wanted: its callback runs soon
	}
	wake_waiters(s);
	if (r->scale_call)
		k8s_call_cancel(r->scale_call);
	if (r->item.space)
		informer_remove(&r->item);
	else
		HASH_DELETE(hh, r->kind->waiting, &r->item);
	pod_set_release(r->pods);
	r->kind->n_records--;
	free(r->selector);
	free(r);
}

int target_store_acquire(struct target_store *s, const struct scale_ref *ref, bool with_pods, struct err *e)
{
	if (s->is_stopped || !k8s_name_is_valid(ref->namespace_name) || !k8s_name_is_valid(ref->name))
		return 0;
	struct target_kind *kind = find_kind(s, ref);
	if (!kind)
		kind = add_kind(s, ref->api_version, ref->kind, ref->path);
	if (!kind)
		return 0;
	struct target_record *r = find_ref(s, ref);
	if (r) {
		r->refs++;
		acquire_pods(r, with_pods);
		return 1;
	}
	size_t size = strlen(ref->namespace_name) + 1 + strlen(ref->name) + 1;
	r = err_calloc(sizeof *r + size, e);
	if (!r) {
		drop_if_unused(s, kind);
		return -1;
	}
	snprintf(r->key, size, "%s/%s", ref->namespace_name, ref->name);
	r->refs = 1;
	r->ready_replicas = -1;
	r->kind = kind;
	kind->n_records++;
	wait_for_kind(r);
	if (join_informer(r, e) < 0) {
		record_free(r);
		drop_if_unused(s, kind);
		return -1;
	}
	acquire_pods(r, with_pods);
	return 1;
}

void target_store_release(struct target_store *s, const struct scale_ref *ref, bool with_pods)
{
	struct target_record *r = find_ref(s, ref);
	if (!r)
		return;
	acquire_pods(r, -(int)with_pods);
	if (--r->refs > 0)
		return;
	struct target_kind *kind = r->kind;
	record_free(r);
	drop_if_unused(s, kind);
}

// Requests the missing state, unless a watch is about to deliver it.
static void ask(struct target_record *r, const struct scale_ref *ref)
{
	if (r->is_known || r->kind->store->is_stopped)
		return;
	if (r->kind->contains_scale || r->item.state != INFORMER_PRESENT)
		(void)informer_refetch(&r->item, 0);
	else if (!r->scale_call && watch_of(r).broken == 0 && mono_ms(r->kind->store) >= r->scale_after_ms)
		fetch_scale(r, ref);
}

void target_store_get(struct target_store *s, const struct scale_ref *ref, struct target_view *ret_view)
{
	struct target_record *r = find_ref(s, ref);
	*ret_view = (struct target_view){.why = "this kind is not watched"};
	struct err e;
	if (!r || join_informer(r, &e) < 0 || !r->item.space)
		return;
	ask(r, ref);
	const char *why = watch_of(r).broken_why;
	ret_view->state = state_of(r);
	ret_view->why = why ? why : "it could not be read";
	ret_view->spec_replicas = r->spec_replicas;
	ret_view->status_replicas = r->status_replicas;
	ret_view->ready_replicas = r->ready_replicas;
	ret_view->is_ready_stale = r->is_ready_stale;
	ret_view->generation = r->generation;
	ret_view->resource_version = r->resource_version;
	ret_view->selector = r->selector ? r->selector : "";
	ret_view->uid = r->uid;
	ret_view->pods = r->pods && pod_set_state(r->pods) == POD_SET_KNOWN ? r->pods : NULL;
}

void target_store_note_missing(struct target_store *s, const struct scale_ref *ref)
{
	struct target_record *r = find_ref(s, ref);
	if (r && r->item.space)
		(void)informer_refetch(&r->item, 0);
}

void target_store_note_scaled(struct target_store *s, const struct scale_ref *ref, const struct scale *scale)
{
	struct target_record *r = find_ref(s, ref);
	if (!r || !r->is_known || !r->exists || strlen(scale->resource_version) >= TARGET_VERSION_BYTES ||
	    !version_is_older(r->resource_version, k8s_version_number(scale->resource_version)))
		return; // the event arrived first
	r->is_noted = true;
	r->spec_replicas = scale->spec_replicas;
	memcpy(r->resource_version, scale->resource_version, TARGET_VERSION_BYTES);
	if (r->kind->contains_scale)
		(void)informer_put(r->kind->informer, &r->item, r->key, scale->resource_version, NULL);
}

static void on_pods_error(void *arg, const char *what, const struct err *error)
{
	const struct target_store_options *o = &((struct target_store *)arg)->options;
	if (o->on_error)
		o->on_error(o->arg, what, error);
}

struct target_store *target_store_new(const struct target_store_options *options, struct err *e)
{
	struct target_store *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	evtimer_assign(&s->wake, options->client->options.loop, on_wake, s);
	s->options = *options;
	s->pods = pod_store_new(
	        &(struct pod_store_options){
	                .client = options->client, .on_error = on_pods_error, .on_change = wake_waiters, .arg = s},
	        e);
	if (s->pods && add_built_in_kinds(s, e) == 0)
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
	for (size_t i = 0; i < s->n_kinds; i++) {
		struct target_kind *kind = s->kinds[i];
		while (kind && kind->waiting)
			record_free((struct target_record *)kind->waiting);
		while (kind && kind->informer && informer_list(kind->informer))
			record_free((struct target_record *)informer_list(kind->informer));
	}
}

void target_store_free(struct target_store *s)
{
	if (!s)
		return;
	assert(!s->waiters);
	target_store_stop(s);
	pod_store_free(s->pods);
	for (size_t i = 0; i < s->n_kinds; i++) {
		if (s->kinds[i])
			drop_kind(s, s->kinds[i]);
	}
	event_del(&s->wake);
	free(s);
}

struct informer_state target_store_get_state(const struct target_store *s)
{
	struct informer_state sum = {.fetches = s->fetches};
	for (size_t i = 0; i < s->n_kinds; i++) {
		informer_add_state(s->kinds[i] ? s->kinds[i]->informer : NULL, &sum);
		sum.items += s->kinds[i] ? HASH_COUNT(s->kinds[i]->waiting) : 0;
	}
	return sum;
}

// ---- targets that are not watched ----

struct ready_fetch {
	struct scale_ref ref; // texts in the same allocation
	target_ready_fn *done;
	void *arg;
};

static void on_ready(void *arg, const struct http_response *response, const struct err *error)
{
	struct ready_fetch *f = arg;
	struct json_span object;
	int32_t ready = -1;
	bool is_stale = false;
	if (!error && object_list_find(response->body, response->body_len, f->ref.name, &object) > 0) {
		ready = scale_path_ready(&f->ref, object, &is_stale);
		if (ready < 0 && workload_kind_find(f->ref.api_version, f->ref.kind, f->ref.path)->plural)
			ready = 0; // the API leaves zeros out
	}
	f->done(f->arg, ready, is_stale);
	free(f);
}

int target_ready_fetch(struct k8s_client *c, const struct scale_ref *ref, target_ready_fn *done, void *arg)
{
	const struct k8s_resource *resource = discovery_find(c->discovery, ref->api_version, ref->kind, !ref->path);
	struct buf path;
	if (!resource || !resource->is_namespaced || !k8s_name_is_valid(ref->name))
		return -1;
	struct ready_fetch *f = scale_ref_copy(ref, sizeof *f);
	if (!f)
		return -1;
	f->done = done;
	f->arg = arg;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "%s/%s/namespaces/%s/%s?fieldSelector=metadata.name%%3D%s",
	           strchr(ref->api_version, '/') ? "/apis" : "/api", ref->api_version, ref->namespace_name,
	           resource->plural, ref->name);
	int rc = path.failed ? -1 : k8s_request(c, "GET", buf_str(&path), NULL, NULL, 0, on_ready, f, NULL);
	buf_done(&path);
	if (rc < 0)
		free(f);
	return rc;
}
