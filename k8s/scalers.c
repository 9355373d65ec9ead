// SPDX-License-Identifier: Apache-2.0
#include "k8s/scalers.h"

#include <assert.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/err.h"
#include "base/http_client.h"
#include "k8s/discovery.h"
#include "k8s/k8s_client.h"
#include "k8s/scale.h"
#include "k8s/scalers_private.h"
#include "k8s/watch.h"

#define KEDA_PATH "/apis/keda.sh/v1alpha1"
// Policies wait for the answer.
#define KEDA_TIMEOUT_MS  5000
#define KEDA_ATTEMPTS    2
#define KEDA_GONE_ASK_MS 5000
#define PATH_BYTES       512

// ---- scopes ----

static struct scope *scope_new(struct scalers *s, const char *namespace_name);
static void scope_free(struct scope *scope);

static bool all_is_usable(const struct scalers *s)
{
	return s->all && !s->all->of[SCALER_HPA].error && !s->all->of[SCALER_SCALED_OBJECT].error;
}

// All namespaces are known: single ones need not be watched any more. Before the answers move over, they are the same.
static void close_spaces(struct scalers *s)
{
	struct space *space, *next;
	if (!all_is_usable(s) || !scalers_scope_is_settled(s, s->all))
		return;
	HASH_ITER(hh, s->spaces, space, next)
	{
		scope_free(space->scope);
		space->scope = NULL;
	}
}

// All namespaces cannot be watched: each on its own, perhaps.
static void open_spaces(struct scalers *s)
{
	struct space *space, *next;
	HASH_ITER(hh, s->spaces, space, next)
	{
		if (!space->scope)
			space->scope = scope_new(s, space->namespace_name);
	}
}

// 410 has the same kind, and says nothing about what there is.
static bool is_not_there(const struct err *error)
{
	return error->kind == ERR_NOT_FOUND && error->code == 404;
}

static void on_synced(void *arg)
{
	struct collection *c = arg;
	scalers_sweep(c);
	bool is_first = !c->is_synced;
	c->is_synced = true;
	if (is_first && c->scope == c->scope->s->all)
		close_spaces(c->scope->s);
	if (is_first)
		scalers_tell_all(c->scope->s);
}

static void on_error(void *arg, const struct err *error)
{
	struct collection *c = arg;
	struct scalers *s = c->scope->s;
	if (error && is_not_there(error) && c->kind == SCALER_SCALED_OBJECT) {
		s->keda = KEDA_ABSENT; // it was taken away; the watch cannot be ended from here
		event_active(&s->later, EV_TIMEOUT, 0);
		return;
	}
	free(c->error);
	c->error = error ? scalers_copy(error->msg) : NULL;
	if (error && c->scope == s->all)
		open_spaces(s);
	else if (c->scope == s->all)
		close_spaces(s);
	scalers_tell_all(s);
}

static void collection_open(struct collection *c)
{
	static const char *const groups[] = {[SCALER_SCALED_OBJECT] = KEDA_PATH, [SCALER_HPA] = "/apis/autoscaling/v1"};
	static const char *const plurals[] = {
	        [SCALER_SCALED_OBJECT] = "scaledobjects", [SCALER_HPA] = "horizontalpodautoscalers"};
	char path[PATH_BYTES];
	const char *ns = c->scope->namespace_name;
	struct err e;
	snprintf(path, sizeof path, "%s/%s%s%s%s", groups[c->kind], ns[0] ? "namespaces/" : "", ns, ns[0] ? "/" : "",
	         plurals[c->kind]);
	c->watch = k8s_watch_new(&(struct k8s_watch_options){.client = c->scope->s->options.client,
	                                                     .path = path,
	                                                     .callbacks = {.on_list = scalers_on_list,
	                                                                   .on_object = scalers_on_object,
	                                                                   .on_deleted = scalers_on_deleted,
	                                                                   .on_synced = on_synced,
	                                                                   .on_error = on_error},
	                                                     .arg = c},
	                         &e);
	if (!c->watch)
		abort(); // only memory can be wanting
}

// What it knew is forgotten; nobody is told.
static void collection_close(struct collection *c)
{
	k8s_watch_free(c->watch);
	c->watch = NULL;
	c->is_synced = false;
	free(c->error);
	c->error = NULL;
	scalers_forget(c);
}

static struct scope *scope_new(struct scalers *s, const char *namespace_name)
{
	struct scope *scope = scalers_make(sizeof *scope);
	scope->s = s;
	snprintf(scope->namespace_name, sizeof scope->namespace_name, "%s", namespace_name);
	for (int kind = 0; kind < SCALER_KIND__COUNT; kind++) {
		scope->of[kind].scope = scope;
		scope->of[kind].kind = (enum scaler_kind)kind;
	}
	collection_open(&scope->of[SCALER_HPA]);
	if (s->keda == KEDA_PRESENT)
		collection_open(&scope->of[SCALER_SCALED_OBJECT]);
	return scope;
}

static void scope_free(struct scope *scope)
{
	if (!scope)
		return;
	for (int kind = 0; kind < SCALER_KIND__COUNT; kind++)
		collection_close(&scope->of[kind]);
	free(scope);
}

static struct space *space_get(struct scalers *s, const char *namespace_name)
{
	struct space *space;
	HASH_FIND_STR(s->spaces, namespace_name, space);
	if (space)
		return space;
	space = scalers_make(sizeof *space);
	snprintf(space->namespace_name, sizeof space->namespace_name, "%s", namespace_name);
	HASH_ADD_STR(s->spaces, namespace_name, space);
	if (HASH_COUNT(s->spaces) > SCALERS_NAMESPACES_MAX && !s->all)
		s->all = scope_new(s, "");
	if (!all_is_usable(s))
		space->scope = scope_new(s, namespace_name);
	return space;
}

static void space_release(struct scalers *s, struct space *space)
{
	if (--space->n_wants > 0)
		return;
	HASH_DEL(s->spaces, space);
	scope_free(space->scope);
	free(space);
	if (HASH_COUNT(s->spaces) > 0)
		return;
	scope_free(s->all);
	s->all = NULL;
}

// ---- KEDA ----

static void ask_again_in(struct scalers *s, int64_t ms)
{
	uint32_t bits = 0;
	evutil_secure_rng_get_bytes(&bits, sizeof bits);
	ms += (int64_t)(bits % (uint64_t)(ms / 10 + 1));
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	evtimer_add(&s->ask_timer, &tv);
}

static void each_scope(struct scalers *s, void (*fn)(struct collection *c))
{
	struct space *space, *next;
	HASH_ITER(hh, s->spaces, space, next)
	{
		if (space->scope)
			fn(&space->scope->of[SCALER_SCALED_OBJECT]);
	}
	if (s->all)
		fn(&s->all->of[SCALER_SCALED_OBJECT]);
}

// 1: there are ScaledObjects, 0: there are none, -1 and *e: the answer does not say.
static int has_scaled_objects(const struct http_response *response, struct err *e)
{
	struct k8s_resource_list list;
	int is_there = 0;
	if (discovery_decode(response->body, response->body_len, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++)
		is_there |= strcmp(list.items[i].plural, "scaledobjects") == 0;
	free(list.items);
	return is_there;
}

// error NULL: it was answered.
static void set_keda_error(struct scalers *s, const struct err *error)
{
	struct err e = {0};
	free(s->keda_error);
	s->keda_error = NULL;
	if (!error)
		return;
	e = *error;
	err_wrap(&e, "cannot see whether there are ScaledObjects: GET " KEDA_PATH);
	s->keda_error = scalers_copy(e.msg);
	ask_again_in(s, SCALERS_KEDA_RETRY_MS);
}

static void on_asked(void *arg, const struct http_response *response, const struct err *error)
{
	struct scalers *s = arg;
	struct err e;
	s->asking = NULL;
	if (error && error->kind == ERR_CANCELED)
		return;
	int is_there = response ? has_scaled_objects(response, &e) : is_not_there(error) ? 0 : -1;
	set_keda_error(s, is_there >= 0 ? NULL : response ? &e : error);
	if (is_there > 0) {
		s->keda = KEDA_PRESENT; // from now on the watches tell
		each_scope(s, collection_open);
	} else if (is_there == 0) {
		s->keda = KEDA_ABSENT;
		ask_again_in(s, s->options.keda_ask_ms);
	}
	if (s->all)
		close_spaces(s);
	scalers_tell_all(s);
}

static void ask_for_keda(struct scalers *s)
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
	struct scalers *s = arg;
	if (s->n_wants == 0)
		return;
	ask_for_keda(s);
	scalers_tell_all(s);
}

// KEDA went away.
static void on_later(evutil_socket_t fd, short what, void *arg)
{
	struct scalers *s = arg;
	if (s->keda != KEDA_ABSENT)
		return;
	each_scope(s, collection_close);
	// Soon: a server that starts does not serve custom resources yet.
	int64_t ms = s->options.keda_ask_ms;
	ask_again_in(s, ms < KEDA_GONE_ASK_MS ? ms : KEDA_GONE_ASK_MS);
	scalers_tell_all(s);
}

// ---- the public face ----

struct scalers *scalers_new(const struct scalers_options *options, struct err *e)
{
	assert(options->client && options->on_change && options->keda_ask_ms >= 0);
	struct scalers *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	s->options = *options;
	if (s->options.keda_ask_ms == 0)
		s->options.keda_ask_ms = SCALERS_KEDA_ASK_MS;
	struct event_base *loop = k8s_client_loop(options->client);
	evtimer_assign(&s->ask_timer, loop, on_ask_timer, s);
	evtimer_assign(&s->later, loop, on_later, s);
	return s;
}

void scalers_free(struct scalers *s)
{
	if (!s)
		return;
	while (s->wants)
		scalers_unwant(s->wants);
	if (s->asking)
		k8s_call_cancel(s->asking);
	event_del(&s->ask_timer);
	event_del(&s->later);
	free(s->keda_error);
	free(s);
}

struct scalers_want *scalers_want(struct scalers *s, const struct scale_ref *ref, void *user, struct err *e)
{
	if (strlen(ref->namespace_name) >= SCALER_NAME_BYTES || strlen(ref->name) >= SCALER_NAME_BYTES ||
	    strlen(ref->kind) >= SCALER_KIND_BYTES || !ref->namespace_name[0]) {
		err_set(e, ERR_USAGE, "no target of Kubernetes is called %.60s %.60s/%.60s", ref->kind,
		        ref->namespace_name, ref->name);
		return NULL;
	}
	struct scalers_want *w = calloc(1, sizeof *w);
	if (!w) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	w->s = s;
	w->user = user;
	scaler_group_of(ref->api_version, w->group);
	w->space = space_get(s, ref->namespace_name);
	w->space->n_wants++;
	w->target = scalers_target_get(s, ref->namespace_name, ref->kind, ref->name);
	DL_APPEND(w->target->wants, w);
	DL_APPEND2(s->wants, w, all_prev, all_next);
	if (s->n_wants++ == 0 && !evtimer_pending(&s->ask_timer, NULL))
		ask_for_keda(s);
	const char *owner = scalers_owner(w), *error = scalers_error(w); // what is known already is no change
	w->said = owner ? scalers_copy(owner) : NULL;
	w->error_said = error ? scalers_copy(error) : NULL;
	w->was_known = scalers_is_known(w);
	return w;
}

void scalers_unwant(struct scalers_want *w)
{
	if (!w)
		return;
	struct scalers *s = w->s;
	DL_DELETE(w->target->wants, w);
	DL_DELETE2(s->wants, w, all_prev, all_next);
	scalers_target_release(s, w->target);
	space_release(s, w->space);
	s->n_wants--;
	free(w->said);
	free(w->error_said);
	free(w);
}

void scalers_get_stats(const struct scalers *s, struct scalers_stats *ret_stats)
{
	*ret_stats = (struct scalers_stats){.wants = s->n_wants,
	                                    .namespaces = HASH_COUNT(s->spaces),
	                                    .objects = s->n_objects,
	                                    .has_keda = s->keda == KEDA_PRESENT,
	                                    .keda_asked = s->keda_asked};
	const struct space *space;
	for (space = s->spaces; space; space = space->hh.next) {
		for (int kind = 0; space->scope && kind < SCALER_KIND__COUNT; kind++)
			ret_stats->watches += space->scope->of[kind].watch != NULL;
	}
	for (int kind = 0; s->all && kind < SCALER_KIND__COUNT; kind++)
		ret_stats->watches += s->all->of[kind].watch != NULL;
}
