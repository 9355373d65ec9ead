// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/target_store.h"

#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/must.h"
#include "base/timer.h"
#include "k8s/cache/target_store_private.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/object_name.h"

static int64_t mono_ms(const struct target_store *s)
{
	return clock_mono_ms(k8s_client_clock(s->options.client));
}

// ---- keys ----

static struct target_record *record_of(struct informer_item *item)
{
	uintptr_t at = (uintptr_t)item - offsetof(struct target_record, item);
	return item ? (struct target_record *)at : NULL;
}

static struct target_record *find_ref(const struct target_store *s, const struct scale_ref *ref)
{
	char key[INFORMER_KEY_BYTES];
	const struct target_kind *kind = target_kind_find(s, ref);
	struct informer_item *item =
	        kind && kind->informer ? informer_get(kind->informer, ref->namespace_name, ref->name) : NULL;
	if (kind && kind->waiting && !item) {
		snprintf(key, sizeof key, "%s/%s", ref->namespace_name, ref->name);
		HASH_FIND_STR(kind->waiting, key, item);
	}
	return record_of(item);
}

// ---- callbacks of the informer ----

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	if (item)
		target_apply_object(record_of(item), json, len);
}

static void on_absent(void *arg, struct informer_item *item)
{
	target_set_absent(record_of(item));
}

static void on_unknown(void *arg, struct informer_item *item)
{
	record_of(item)->is_known = false;
}

static void on_change(void *arg)
{
	target_store_wake(((struct target_kind *)arg)->store);
}

static void on_error(void *arg, const char *namespace_name, const struct err *error)
{
	const struct target_kind *kind = arg;
	const struct target_store_options *o = &kind->store->options;
	char what[TARGET_NAME_BYTES + DISCOVERY_NAME_BYTES + 64];
	snprintf(what, sizeof what, "%s in %s%s", kind->plural, namespace_name[0] ? "namespace " : "all namespaces",
	         namespace_name);
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
		timer_start(s->wake, left > 0 ? left : 1);
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
		target_store_wake(s);
	else if (s->waiters == w)
		arm_wake(s);
}

// ---- public functions ----

static void acquire_pods(struct target_record *r, int change)
{
	r->pods_refs += change;
	if (change)
		target_follow_pods(r);
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
	struct informer *informer = target_kind_informer(r->kind, &cause);
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
		target_kind_drop(s, kind);
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
	target_store_wake(s);
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
	struct target_kind *kind = target_kind_find(s, ref);
	if (!kind)
		kind = target_kind_add(s, ref->api_version, ref->kind, ref->path);
	if (!kind)
		return 0;
	struct target_record *r = find_ref(s, ref);
	if (r) {
		r->refs++;
		acquire_pods(r, with_pods);
		return 1;
	}
	size_t size = strlen(ref->namespace_name) + 1 + strlen(ref->name) + 1;
	r = calloc(1, sizeof *r + size);
	if (!r) {
		drop_if_unused(s, kind);
		return err_set(e, ERR_INTERNAL, "out of memory");
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
		target_fetch_scale(r, ref);
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
	    !target_version_is_older(r->resource_version, scale->resource_version))
		return; // the event arrived first
	r->is_noted = true;
	r->spec_replicas = scale->spec_replicas;
	memcpy(r->resource_version, scale->resource_version, TARGET_VERSION_BYTES);
	if (r->kind->contains_scale)
		(void)informer_put(r->kind->informer, &r->item, r->key, scale->resource_version, NULL);
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
	s->callbacks = &informer_callbacks;
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
	for (size_t i = 0; i < s->n_kinds; i++) {
		struct target_kind *kind = s->kinds[i];
		while (kind && kind->waiting)
			record_free(record_of(kind->waiting));
		while (kind && kind->informer && informer_list(kind->informer))
			record_free(record_of(informer_list(kind->informer)));
	}
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
	struct target_store_stats *sum = ret_stats;
	*sum = (struct target_store_stats){.fetches = s->stats.fetches};
	for (size_t i = 0; i < s->n_kinds; i++) {
		const struct target_kind *kind = s->kinds[i];
		sum->targets += kind ? (size_t)kind->n_records : 0;
		if (!kind || !kind->informer)
			continue;
		const struct informer_state one = informer_get_state(kind->informer, NULL);
		sum->watches += one.watches;
		sum->unsynced += one.unsynced;
		sum->broken += one.broken;
		sum->broken_why = one.broken_why ? one.broken_why : sum->broken_why;
		sum->lists += one.lists;
		sum->streams += one.streams;
		sum->events += one.events;
		sum->gone += one.gone;
		sum->fetches += one.fetches;
	}
}
