// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/conflict_watch.h"

#include <assert.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/backoff.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "base/must.h"
#include "base/timer.h"
#include "k8s/cache/conflict_watch_private.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/scale.h"

#define KEDA_PATH "/apis/keda.sh/v1alpha1"
// Policies wait for the reply.
#define KEDA_TIMEOUT_MS  5000
#define KEDA_ATTEMPTS    2
#define KEDA_GONE_ASK_MS 5000

// ---- watches ----

// Returns whether the server does not have the resource. 410 has the same kind, but is about a version.
static bool is_not_served(const struct err *error)
{
	return error->kind == ERR_NOT_FOUND && error->code == 404;
}

static void on_change(void *arg)
{
	conflict_watch_report_all(((struct resource_watch *)arg)->s);
}

static void on_error(void *arg, const char *namespace_name, const struct err *error)
{
	const struct resource_watch *c = arg;
	struct conflict_watch *s = c->s;
	if (c->kind == AUTOSCALER_SCALED_OBJECT && error && is_not_served(error) && s->keda == KEDA_PRESENT) {
		s->keda = KEDA_ABSENT; // KEDA was uninstalled; the watch must not be freed in this callback
		event_active(&s->later, EV_TIMEOUT, 0);
	}
}

static int resource_watch_init(struct conflict_watch *s, enum autoscaler_kind kind, struct err *e)
{
	static const char *const groups[] = {
	        [AUTOSCALER_SCALED_OBJECT] = KEDA_PATH, [AUTOSCALER_HPA] = "/apis/autoscaling/v1"};
	static const char *const plurals[] = {
	        [AUTOSCALER_SCALED_OBJECT] = "scaledobjects", [AUTOSCALER_HPA] = "horizontalpodautoscalers"};
	struct resource_watch *c = &s->of[kind];
	c->s = s;
	c->kind = kind;
	c->informer = informer_new(
	        &(struct informer_options){
	                .client = s->options.client,
	                .group_path = groups[kind],
	                .plural = plurals[kind],
	                .own_watches = CONFLICT_NAMESPACES_MAX,
	                .callbacks = {conflict_watch_on_object, conflict_watch_on_absent, NULL, on_change, on_error},
	                .arg = c},
	        e);
	return c->informer ? 0 : -1;
}

// Memory for a watch is needed from a callback of discovery, too, so there is no caller to return an error to.
static struct informer_namespace *want_resource(struct conflict_watch *s, enum autoscaler_kind kind,
                                                const char *namespace_name)
{
	return must_alloc(informer_want_namespace(s->of[kind].informer, namespace_name, NULL));
}

static struct namespace_watch *namespace_watch_get(struct conflict_watch *s, const char *namespace_name)
{
	struct namespace_watch *watched;
	HASH_FIND_STR(s->namespaces, namespace_name, watched);
	if (watched)
		return watched;
	watched = must_alloc(calloc(1, sizeof *watched));
	snprintf(watched->namespace_name, sizeof watched->namespace_name, "%s", namespace_name);
	HASH_ADD_STR(s->namespaces, namespace_name, watched);
	watched->of[AUTOSCALER_HPA] = want_resource(s, AUTOSCALER_HPA, namespace_name);
	if (s->keda == KEDA_PRESENT)
		watched->of[AUTOSCALER_SCALED_OBJECT] = want_resource(s, AUTOSCALER_SCALED_OBJECT, namespace_name);
	return watched;
}

static void close_one(struct namespace_watch *watched, enum autoscaler_kind kind)
{
	if (watched->of[kind])
		informer_unwant(watched->of[kind]);
	watched->of[kind] = NULL;
}

static void namespace_watch_release(struct conflict_watch *s, struct namespace_watch *watched)
{
	if (--watched->n_wants > 0)
		return;
	HASH_DEL(s->namespaces, watched);
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++)
		close_one(watched, (enum autoscaler_kind)kind);
	free(watched);
}

// ---- KEDA ----

static void ask_again_in(struct conflict_watch *s, int64_t ms)
{
	timer_start(&s->ask_timer, ms + backoff_random_ms(ms / 10 + 1));
}

static void open_scaled_objects(struct conflict_watch *s)
{
	struct namespace_watch *watched;
	for (watched = s->namespaces; watched; watched = watched->hh.next)
		watched->of[AUTOSCALER_SCALED_OBJECT] =
		        want_resource(s, AUTOSCALER_SCALED_OBJECT, watched->namespace_name);
}

static void close_scaled_objects(struct conflict_watch *s)
{
	struct namespace_watch *watched;
	for (watched = s->namespaces; watched; watched = watched->hh.next)
		close_one(watched, AUTOSCALER_SCALED_OBJECT);
}

// Returns 1 when the group serves ScaledObjects, 0 when it does not, -1 and *e when the reply is invalid.
static int has_scaled_objects(const struct http_response *response, struct err *e)
{
	struct k8s_resource_list list;
	int is_served = 0;
	if (discovery_decode(response->body, response->body_len, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++)
		is_served |= strcmp(list.items[i].plural, "scaledobjects") == 0;
	free(list.items);
	return is_served;
}

// error is NULL when the server answered.
static void set_keda_error(struct conflict_watch *s, const struct err *error)
{
	struct err e = {0};
	free(s->keda_error);
	s->keda_error = NULL;
	if (!error)
		return;
	e = *error;
	err_wrap(&e, "cannot find out whether the cluster has ScaledObjects: GET " KEDA_PATH);
	s->keda_error = conflict_watch_copy(e.msg);
	ask_again_in(s, CONFLICT_KEDA_RETRY_MS);
}

static void on_asked(void *arg, const struct http_response *response, const struct err *error)
{
	struct conflict_watch *s = arg;
	struct err e;
	s->asking = NULL;
	if (error && error->kind == ERR_CANCELED)
		return;
	int is_served = response ? has_scaled_objects(response, &e) : is_not_served(error) ? 0 : -1;
	set_keda_error(s, is_served >= 0 ? NULL : response ? &e : error);
	if (is_served > 0) {
		s->keda = KEDA_PRESENT; // from now on the watch reports when KEDA is uninstalled
		open_scaled_objects(s);
	} else if (is_served == 0) {
		s->keda = KEDA_ABSENT;
		ask_again_in(s, s->options.keda_ask_ms);
	}
	conflict_watch_report_all(s);
}

static void ask_for_keda(struct conflict_watch *s)
{
	struct err e;
	if (s->asking || s->keda == KEDA_PRESENT)
		return;
	s->keda_asked++;
	if (k8s_request_with(s->options.client,
	                     &(struct k8s_request_options){.method = "GET",
	                                                   .path = KEDA_PATH,
	                                                   .timeout_ms = KEDA_TIMEOUT_MS,
	                                                   .max_attempts = KEDA_ATTEMPTS,
	                                                   .done = on_asked,
	                                                   .arg = s},
	                     &s->asking, &e) < 0)
		set_keda_error(s, &e);
}

static void on_ask_timer(evutil_socket_t fd, short what, void *arg)
{
	struct conflict_watch *s = arg;
	if (s->n_wants == 0)
		return;
	ask_for_keda(s);
	conflict_watch_report_all(s);
}

// KEDA was uninstalled.
static void on_later(evutil_socket_t fd, short what, void *arg)
{
	struct conflict_watch *s = arg;
	if (s->keda != KEDA_ABSENT)
		return;
	close_scaled_objects(s);
	// Soon, because a server that is starting does not serve custom resources yet.
	int64_t ms = s->options.keda_ask_ms;
	ask_again_in(s, ms < KEDA_GONE_ASK_MS ? ms : KEDA_GONE_ASK_MS);
	conflict_watch_report_all(s);
}

// ---- public functions ----

struct conflict_watch *conflict_watch_new(const struct conflict_watch_options *options, struct err *e)
{
	assert(options->client && options->on_change && options->keda_ask_ms >= 0);
	struct conflict_watch *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	s->options = *options;
	if (s->options.keda_ask_ms == 0)
		s->options.keda_ask_ms = CONFLICT_KEDA_ASK_MS;
	struct event_base *loop = k8s_client_loop(options->client);
	evtimer_assign(&s->ask_timer, loop, on_ask_timer, s);
	evtimer_assign(&s->later, loop, on_later, s);
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++) {
		if (resource_watch_init(s, (enum autoscaler_kind)kind, e) < 0) {
			conflict_watch_free(s);
			return NULL;
		}
	}
	return s;
}

void conflict_watch_free(struct conflict_watch *s)
{
	if (!s)
		return;
	while (s->wants)
		conflict_watch_unwant(s->wants);
	if (s->asking)
		k8s_call_cancel(s->asking);
	event_del(&s->ask_timer);
	event_del(&s->later);
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++)
		informer_free(s->of[kind].informer);
	free(s->keda_error);
	free(s);
}

struct conflict_watch_want *conflict_watch_want(struct conflict_watch *s, const struct scale_ref *ref, void *user,
                                                struct err *e)
{
	if (strlen(ref->namespace_name) >= AUTOSCALER_NAME_BYTES || strlen(ref->name) >= AUTOSCALER_NAME_BYTES ||
	    strlen(ref->kind) >= AUTOSCALER_KIND_BYTES || !ref->namespace_name[0]) {
		err_set(e, ERR_USAGE,
		        "invalid scale target %.60s %.60s/%.60s: expected names of at most 253 characters", ref->kind,
		        ref->namespace_name, ref->name);
		return NULL;
	}
	char group[AUTOSCALER_NAME_BYTES];
	autoscaler_group_of(ref->api_version, group);
	struct conflict_watch_want *w = calloc(1, sizeof *w + strlen(group) + 1);
	if (!w) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	w->s = s;
	w->user = user;
	memcpy(w->group, group, strlen(group) + 1);
	w->watched = namespace_watch_get(s, ref->namespace_name);
	w->watched->n_wants++;
	w->target = conflict_watch_target_get(s, ref->namespace_name, ref->kind, ref->name);
	DL_APPEND(w->target->wants, w);
	DL_APPEND2(s->wants, w, all_prev, all_next);
	if (s->n_wants++ == 0 && !evtimer_pending(&s->ask_timer, NULL))
		ask_for_keda(s);
	const char *conflict = conflict_watch_find(w),
	           *error = conflict_watch_error(w); // only later changes are reported
	w->reported = conflict ? conflict_watch_copy(conflict) : NULL;
	w->error_reported = error ? conflict_watch_copy(error) : NULL;
	w->was_known = conflict_watch_is_known(w);
	return w;
}

void conflict_watch_unwant(struct conflict_watch_want *w)
{
	if (!w)
		return;
	struct conflict_watch *s = w->s;
	DL_DELETE(w->target->wants, w);
	DL_DELETE2(s->wants, w, all_prev, all_next);
	conflict_watch_target_release(s, w->target);
	namespace_watch_release(s, w->watched);
	s->n_wants--;
	free(w->reported);
	free(w->error_reported);
	free(w);
}
