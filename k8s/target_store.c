// SPDX-License-Identifier: Apache-2.0
#include "k8s/target_store.h"

#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/http_client.h"
#include "k8s/k8s_client.h"
#include "k8s/target_decode.h"
#include "k8s/watch.h"

#define KEY_BYTES     (2 * TARGET_NAME_BYTES + 8)
#define VERSION_BYTES 32 // of etcd's 20 digits; a longer one is not kept, and its target read by GET

enum kind { DEPLOYMENT, STATEFUL_SET, REPLICA_SET, KIND__COUNT };
static const struct {
	const char *kind, *plural;
} kinds[] = {
        [DEPLOYMENT] = {"Deployment", "deployments"},
        [STATEFUL_SET] = {"StatefulSet", "statefulsets"},
        [REPLICA_SET] = {"ReplicaSet", "replicasets"},
};
_Static_assert(sizeof kinds / sizeof kinds[0] == KIND__COUNT, "a row for each kind");

struct target_watch {
	struct target_watch *prev, *next;
	struct target_store *store;
	enum kind kind;
	struct k8s_watch *watch;
	struct target_record *records;
	uint64_t list; // number of the latest list begun
	bool is_synced, is_broken;
	char why[ERR_MSG_BYTES];
	char namespace_name[]; // "" = all
};

// Kept small: there may be 20000 of them.
struct target_record {
	UT_hash_handle hh;
	struct target_record *prev, *next; // of the watch
	struct target_watch *watch;
	struct target_store *store;
	struct k8s_call *fetch; // wanted after the list had come: read once by itself
	int64_t fetch_after_ms; // 0 = at once
	uint64_t seen;          // number of the latest list it was in
	int refs;
	bool is_known, exists;
	bool is_noted; // the version is that of our own write, whose event may not have come
	int32_t spec_replicas, status_replicas, ready_replicas;
	int64_t generation;
	char resource_version[VERSION_BYTES], uid[TARGET_UID_BYTES];
	char *selector; // NULL = ""
	char key[];     // kind digit, namespace, '/', name
};

struct target_store {
	struct target_store_options options;
	struct target_record *records; // hash
	struct target_watch *watches;
	struct target_watch *all[KIND__COUNT]; // of these the one of all namespaces
	int n_watches[KIND__COUNT];
	uint64_t lists;
	struct target_waiter *waiters;
	struct event *wake;
	bool is_stopped;
	struct target_store_stats stats;
};

static int64_t mono_ms(const struct target_store *s)
{
	return clock_mono_ms(k8s_client_clock(s->options.client));
}

// ---- keys ----

static bool kind_of(const struct scale_ref *ref, enum kind *ret_kind)
{
	if (strcmp(ref->api_version, "apps/v1") != 0)
		return false;
	for (int k = 0; k < KIND__COUNT; k++) {
		if (strcmp(ref->kind, kinds[k].kind) == 0) {
			*ret_kind = (enum kind)k;
			return true;
		}
	}
	return false;
}

static size_t format_key(char key[KEY_BYTES], enum kind kind, const char *namespace_name, const char *name)
{
	int n = snprintf(key, KEY_BYTES, "%d%s/%s", (int)kind, namespace_name, name);
	return n > 0 && n < KEY_BYTES ? (size_t)n : 0;
}

static struct target_record *find(const struct target_store *s, enum kind kind, const char *namespace_name,
                                  const char *name)
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
	enum kind kind;
	return kind_of(ref, &kind) ? find(s, kind, ref->namespace_name, ref->name) : NULL;
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

static void set_selector(struct target_record *r, const char *selector)
{
	if (strcmp(r->selector ? r->selector : "", selector) == 0)
		return;
	free(r->selector);
	r->selector = selector[0] ? strdup(selector) : NULL;
	if (selector[0] && !r->selector)
		abort(); // nothing sensible goes on without memory; the supervisor restarts us
}

static void apply(struct target_record *r, const char *json, size_t len)
{
	struct target_fields f;
	if (target_decode(json, len, &f, NULL) < 0 || strlen(f.resource_version) >= VERSION_BYTES) {
		r->is_known = false; // asked for by GET, which tells what is wrong
		r->fetch_after_ms = mono_ms(r->store) + TARGET_RETRY_MS;
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
	memcpy(r->resource_version, f.resource_version, VERSION_BYTES);
	memcpy(r->uid, f.uid, sizeof r->uid);
	set_selector(r, f.selector);
}

static void set_absent(struct target_record *r)
{
	r->is_known = true;
	r->exists = r->is_noted = false;
}

// ---- waiting ----

static enum target_state state_of(const struct target_record *r)
{
	if (!r || !r->watch || r->watch->is_broken || r->store->is_stopped)
		return TARGET_UNWATCHED;
	if (r->is_known)
		return r->exists ? TARGET_FOUND : TARGET_ABSENT;
	return r->watch->is_synced && !r->fetch ? TARGET_UNWATCHED : TARGET_UNSYNCED;
}

static void wake_soon(struct target_store *s)
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
		wake_soon(s);
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

// ---- one watch ----

static void on_list(void *arg)
{
	struct target_watch *w = arg;
	struct target_record *r;
	w->list = ++w->store->lists;
	DL_FOREACH(w->records, r)
	r->is_noted = false; // versions may have begun anew, as after a restored backup
}

static struct target_record *find_object(const struct target_watch *w, const char *json, size_t len)
{
	char namespace_name[TARGET_NAME_BYTES], name[TARGET_NAME_BYTES];
	if (!object_decode_name(json, len, namespace_name, name))
		return NULL;
	return find(w->store, w->kind, namespace_name, name);
}

static void on_object(void *arg, const char *json, size_t len)
{
	struct target_watch *w = arg;
	struct target_record *r = find_object(w, json, len);
	if (!r)
		return; // nobody's
	r->seen = w->store->lists;
	apply(r, json, len);
}

static void on_deleted(void *arg, const char *json, size_t len)
{
	struct target_record *r = find_object(arg, json, len);
	if (r)
		set_absent(r);
}

static void watch_free(struct target_watch *w)
{
	struct target_store *s = w->store;
	assert(!w->records);
	k8s_watch_free(w->watch);
	DL_DELETE(s->watches, w);
	s->n_watches[w->kind]--;
	if (s->all[w->kind] == w)
		s->all[w->kind] = NULL;
	free(w);
}

// The watch of all namespaces knows everything now: those of single ones end.
static void absorb(struct target_watch *all)
{
	struct target_watch *w, *next_watch;
	DL_FOREACH_SAFE(all->store->watches, w, next_watch)
	{
		struct target_record *r, *next;
		if (w == all || w->kind != all->kind)
			continue;
		DL_FOREACH_SAFE(w->records, r, next)
		{
			DL_DELETE(w->records, r);
			DL_APPEND(all->records, r);
			r->watch = all;
		}
		watch_free(w);
	}
}

static void on_synced(void *arg)
{
	struct target_watch *w = arg;
	struct target_record *r;
	w->is_synced = true;
	if (w->store->all[w->kind] == w)
		absorb(w);
	DL_FOREACH(w->records, r)
	{
		if (r->seen < w->list)
			set_absent(r);
	}
	wake_soon(w->store);
}

static void on_error(void *arg, const struct err *error)
{
	struct target_watch *w = arg;
	const struct target_store_options *o = &w->store->options;
	w->is_broken = error != NULL;
	snprintf(w->why, sizeof w->why, "%s", error ? error->msg : "");
	wake_soon(w->store);
	if (!o->on_error)
		return;
	char what[TARGET_NAME_BYTES + 64];
	snprintf(what, sizeof what, "%s in %s%s", kinds[w->kind].plural,
	         w->namespace_name[0] ? "namespace " : "all namespaces", w->namespace_name);
	o->on_error(o->arg, what, error);
}

static struct target_watch *watch_start(struct target_store *s, enum kind kind, const char *namespace_name,
                                        struct err *e)
{
	char path[TARGET_NAME_BYTES + 64];
	size_t size = strlen(namespace_name) + 1;
	struct target_watch *w = calloc(1, sizeof *w + size);
	if (!w) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	w->store = s;
	w->kind = kind;
	memcpy(w->namespace_name, namespace_name, size);
	snprintf(path, sizeof path, "/apis/apps/v1%s%s/%s", namespace_name[0] ? "/namespaces/" : "", namespace_name,
	         kinds[kind].plural);
	w->watch = k8s_watch_new(
	        &(struct k8s_watch_options){.client = s->options.client,
	                                    .path = path,
	                                    .callbacks = {on_list, on_object, on_deleted, on_synced, on_error},
	                                    .arg = w},
	        e);
	if (!w->watch) {
		free(w);
		return NULL;
	}
	DL_APPEND(s->watches, w);
	s->n_watches[kind]++;
	if (!namespace_name[0])
		s->all[kind] = w;
	return w;
}

// The watch that a target belongs to, started when there is none.
static struct target_watch *watch_of(struct target_store *s, enum kind kind, const char *namespace_name, struct err *e)
{
	struct target_watch *all = s->all[kind], *w;
	if (all && all->is_synced)
		return all;
	DL_FOREACH(s->watches, w)
	{
		if (w->kind == kind && strcmp(w->namespace_name, namespace_name) == 0)
			return w;
	}
	if (all)
		return all;
	return watch_start(s, kind, s->n_watches[kind] < TARGET_NAMESPACES_MAX ? namespace_name : "", e);
}

// ---- a target wanted after the list had come ----

static void on_fetched(void *arg, const struct http_response *response, const struct err *error)
{
	struct target_record *r = arg;
	r->fetch = NULL;
	if (error && error->kind == ERR_CANCELED)
		return; // nobody wants it any more, or all ends
	if (r->is_known) {
		// An event was faster.
	} else if (response) {
		apply(r, response->body, response->body_len);
		r->is_noted = r->is_known; // events on their way may be older
	} else if (error->code == 404) {
		set_absent(r);
	} else {
		r->fetch_after_ms = mono_ms(r->store) + TARGET_RETRY_MS;
	}
	wake_soon(r->store);
}

static void fetch(struct target_record *r, const struct scale_ref *ref)
{
	char path[2 * TARGET_NAME_BYTES + 64];
	struct target_store *s = r->store;
	snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%s/%s/%s", ref->namespace_name,
	         kinds[r->watch->kind].plural, ref->name);
	const struct k8s_request_options o = {.method = "GET", .path = path, .done = on_fetched, .arg = r};
	s->stats.fetches++;
	if (k8s_request_with(s->options.client, &o, &r->fetch, NULL) < 0) {
		r->fetch = NULL;
		r->fetch_after_ms = mono_ms(s) + TARGET_RETRY_MS;
	}
}

// ---- the public face ----

int target_store_want(struct target_store *s, const struct scale_ref *ref, struct err *e)
{
	enum kind kind;
	char key[KEY_BYTES];
	if (s->is_stopped || !kind_of(ref, &kind) || !scale_name_is_valid(ref->namespace_name) ||
	    !scale_name_is_valid(ref->name))
		return 0;
	struct target_record *r = find(s, kind, ref->namespace_name, ref->name);
	if (r) {
		r->refs++;
		return 0;
	}
	size_t len = format_key(key, kind, ref->namespace_name, ref->name);
	struct target_watch *w = watch_of(s, kind, ref->namespace_name, e);
	if (!w)
		return -1;
	r = calloc(1, sizeof *r + len + 1);
	if (!r)
		return err_set(e, ERR_INTERNAL, "out of memory");
	memcpy(r->key, key, len);
	r->refs = 1;
	r->store = s;
	r->watch = w;
	DL_APPEND(w->records, r);
	HASH_ADD_KEYPTR(hh, s->records, r->key, len, r);
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
	wake_soon(s);
	if (r->fetch)
		k8s_call_cancel(r->fetch);
	HASH_DELETE(hh, s->records, r);
	DL_DELETE(r->watch->records, r);
	free(r->selector);
	free(r);
}

void target_store_unwant(struct target_store *s, const struct scale_ref *ref)
{
	struct target_record *r = find_ref(s, ref);
	if (!r || --r->refs > 0)
		return;
	struct target_watch *w = r->watch;
	record_free(r);
	if (!w->records)
		watch_free(w);
}

void target_store_get(struct target_store *s, const struct scale_ref *ref, struct target_view *ret_view)
{
	struct target_record *r = find_ref(s, ref);
	*ret_view = (struct target_view){.why = "this kind is not watched"};
	if (!r)
		return;
	if (!r->is_known && !r->fetch && r->watch->is_synced && !r->watch->is_broken && !s->is_stopped &&
	    mono_ms(s) >= r->fetch_after_ms)
		fetch(r, ref);
	ret_view->state = state_of(r);
	ret_view->why = r->watch->is_broken ? r->watch->why : "it could not be read";
	ret_view->spec_replicas = r->spec_replicas;
	ret_view->status_replicas = r->status_replicas;
	ret_view->ready_replicas = r->ready_replicas;
	ret_view->generation = r->generation;
	ret_view->resource_version = r->resource_version;
	ret_view->selector = r->selector ? r->selector : "";
	ret_view->uid = r->uid;
}

void target_store_note_scaled(struct target_store *s, const struct scale_ref *ref, const struct scale *scale)
{
	struct target_record *r = find_ref(s, ref);
	if (!r || !r->is_known || !r->exists || strlen(scale->resource_version) >= VERSION_BYTES ||
	    !is_older(r->resource_version, scale->resource_version))
		return; // the event came first
	r->is_noted = true;
	r->spec_replicas = scale->spec_replicas;
	memcpy(r->resource_version, scale->resource_version, VERSION_BYTES);
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
	return s;
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
		watch_free(s->watches);
}

void target_store_free(struct target_store *s)
{
	if (!s)
		return;
	assert(!s->waiters);
	target_store_stop(s);
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
		ret_stats->lists += one.lists;
		ret_stats->streams += one.streams;
		ret_stats->events += one.events;
		ret_stats->gone += one.gone;
	}
}
