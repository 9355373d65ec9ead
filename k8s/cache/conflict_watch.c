// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/conflict_watch.h"

#include <event2/event.h>
#include <event2/util.h>
#include <utlist.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/http/http_client.h"
#include "base/timer.h"
#include "k8s/cache/conflict_watch_private.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/scale.h"

// Policies wait for the reply.
#define ASK_TIMEOUT_MS 5000
#define ASK_ATTEMPTS   2
#define GONE_ASK_MS    5000
#define PATH_BYTES     64
#define KEY_BYTES      (3 * AUTOSCALER_NAME_BYTES + AUTOSCALER_KIND_BYTES)

// A conflicting autoscaler; text: how messages name it.
struct conflict {
	struct informer_item item;                  // first; informer_keep() allocates it
	struct conflict *target_prev, *target_next; // conflicts of its target
	struct target *target;
	int rank; // the lowest is named
	char *group, *text;
};

// A target, its autoscalers, and the callers that want to know them.
struct target {
	UT_hash_handle hh;
	struct conflict *conflicts;
	struct conflict_interest *wants;
	char key[]; // "NAMESPACE/KIND/NAME"
};

struct conflict_interest {
	struct conflict_interest *prev, *next;         // list of its target
	struct conflict_interest *all_prev, *all_next; // list of all
	struct conflict_watch *s;
	struct target *target;
	struct namespace_watch *watched;
	void *user;
	char *reported; // the conflict that on_change was last called for; NULL: none
	char *error_reported;
	bool was_known;
	char group[]; // API group of the target
};

// Returns whether objects of the kind are not watched, because the caller acts on them.
static bool skips(const struct conflict_watch *s, enum autoscaler_kind kind)
{
	return kind == AUTOSCALER_SCALED_OBJECT && s->options.skip_scaled_objects;
}

// NULL stays NULL.
static char *copy_text(const char *text)
{
	return text ? must_alloc(strdup(text)) : NULL;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

// ---- the conflicting autoscaler of a target ----

const char *conflict_watch_find(const struct conflict_interest *w)
{
	const struct conflict *best = NULL, *c;
	int n = 0;
	DL_FOREACH2(w->target->conflicts, c, target_next)
	{
		if (n++ == CONFLICT_COMPARED_MAX)
			break;
		// An HPA without an apiVersion does not find its target, but it is meant for it, so it is reported.
		if (c->group[0] && strcmp(c->group, w->group) != 0)
			continue;
		if (!best || c->rank < best->rank || (c->rank == best->rank && strcmp(c->text, best->text) < 0))
			best = c;
	}
	return best ? best->text : NULL;
}

bool conflict_watch_is_known(const struct conflict_interest *w)
{
	static const struct informer_state unsynced = {.unsynced = 1};
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++) {
		const struct resource_watch *c = &w->s->of[kind];
		const struct informer_item *watched = &w->watched->of[kind];
		if (c->served == SERVED_NO || c->error)
			continue;
		const struct informer_state state =
		        watched->space ? informer_get_state(c->informer, watched) : unsynced;
		if (state.unsynced > 0 && state.broken == 0)
			return false;
	}
	return true;
}

const char *conflict_watch_error(const struct conflict_interest *w)
{
	const char *asked = NULL;
	for (int kind = AUTOSCALER_KIND__COUNT - 1; kind >= 0; kind--) {
		const struct resource_watch *c = &w->s->of[kind];
		const struct informer_item *watched = &w->watched->of[kind];
		bool is_watched = c->served == SERVED_YES && watched->space;
		const char *error = is_watched ? informer_get_state(c->informer, watched).broken_why : NULL;
		if (error)
			return error;
		asked = asked ? asked : c->error;
	}
	return asked;
}

static void report(struct conflict_interest *w)
{
	const char *conflict = conflict_watch_find(w), *error = conflict_watch_error(w);
	bool is_known = conflict_watch_is_known(w);
	if (is_same(conflict, w->reported) && is_same(error, w->error_reported) && is_known <= w->was_known)
		return;
	free(w->reported);
	free(w->error_reported);
	w->reported = copy_text(conflict);
	w->error_reported = copy_text(error);
	w->was_known = w->was_known || is_known;
	w->s->options.on_change(w->s->options.arg, w->user);
}

static void report_target(struct target *t)
{
	struct conflict_interest *w;
	DL_FOREACH(t->wants, w)
	{
		report(w);
	}
}

static void report_all(struct conflict_watch *s)
{
	struct conflict_interest *w;
	DL_FOREACH2(s->wants, w, all_next)
	{
		report(w);
	}
}

// ---- targets ----

static struct target *get_target(struct conflict_watch *s, const char *namespace_name, const char *kind,
                                 const char *name)
{
	char key[KEY_BYTES];
	snprintf(key, sizeof key, "%s/%s/%s", namespace_name, kind, name);
	return hash_table_get(&s->targets, key, strlen(key), offsetof(struct target, key));
}

static void free_target_if_unused(struct conflict_watch *s, struct target *t)
{
	if (t->conflicts || t->wants)
		return;
	HASH_DEL(s->targets, t);
	free(t);
}

// ---- conflicting autoscalers ----

// The caller reports the change of the target.
static struct target *leave_target(struct conflict *c)
{
	struct target *t = c->target;
	DL_DELETE2(t->conflicts, c, target_prev, target_next);
	free(c->group);
	free(c->text);
	c->target = NULL;
	return t;
}

static void join_target(const struct resource_watch *watch, struct conflict *c, const struct autoscaler_object *o)
{
	char text[CONFLICT_TEXT_BYTES];
	bool is_kedas =
	        watch->kind == AUTOSCALER_HPA && o->scaled_object[0] && !skips(watch->s, AUTOSCALER_SCALED_OBJECT);
	enum autoscaler_kind kind = is_kedas ? AUTOSCALER_SCALED_OBJECT : watch->kind;
	snprintf(text, sizeof text, "%s %s/%s", autoscaler_kinds[kind].name, o->namespace_name,
	         is_kedas ? o->scaled_object : o->name);
	c->rank = (int)kind;
	c->group = copy_text(o->target_group);
	c->text = copy_text(text);
	c->target = get_target(watch->s, o->namespace_name, o->target_kind, o->target_name);
	DL_APPEND2(c->target->conflicts, c, target_prev, target_next);
}

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	const struct resource_watch *watch = arg;
	struct conflict *c = (struct conflict *)item;
	struct autoscaler_object o;
	if (!autoscaler_decode(watch->kind, json, len, &o))
		return;
	struct target *left = c ? leave_target(c) : NULL;
	if (o.has_target) {
		c = c ? c : informer_keep(watch->informer, sizeof *c, o.namespace_name, o.name);
		join_target(watch, c, &o);
		report_target(c->target);
	} else if (c) {
		informer_remove(item);
		free(c);
	}
	if (left) {
		report_target(left);
		free_target_if_unused(watch->s, left);
	}
}

static void on_absent(void *arg, struct informer_item *item)
{
	const struct resource_watch *watch = arg;
	struct conflict *c = (struct conflict *)item;
	struct target *t = leave_target(c);
	informer_remove(item);
	free(c);
	report_target(t);
	free_target_if_unused(watch->s, t);
}

// ---- watches ----

// Returns whether the server does not have the resource. 410 has the same kind, but is about a version.
static bool is_not_served(const struct err *error)
{
	return error->kind == ERR_NOT_FOUND && error->code == 404;
}

static void on_change(void *arg)
{
	report_all(((struct resource_watch *)arg)->s);
}

static void on_error(void *arg, const char *what, const struct err *error)
{
	struct resource_watch *c = arg;
	if (c->kind != AUTOSCALER_HPA && error && is_not_served(error) && c->served == SERVED_YES) {
		c->served = SERVED_NO; // uninstalled; the watch must not be freed in this callback
		event_active(&c->s->later, EV_TIMEOUT, 0);
	}
}

static void path_of(enum autoscaler_kind kind, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "/apis/%s", autoscaler_kinds[kind].group_version);
}

static int resource_watch_init(struct conflict_watch *s, enum autoscaler_kind kind, struct err *e)
{
	struct resource_watch *c = &s->of[kind];
	char path[PATH_BYTES];
	path_of(kind, path);
	c->s = s;
	c->kind = kind;
	c->served = kind == AUTOSCALER_HPA ? SERVED_YES : SERVED_UNKNOWN;
	if (skips(s, kind))
		c->served = SERVED_NO;
	c->informer =
	        informer_new(&(struct informer_options){.client = s->options.client,
	                                                .group_path = path,
	                                                .plural = autoscaler_kinds[kind].plural,
	                                                .own_watches = CONFLICT_NAMESPACES_MAX,
	                                                .callbacks = {on_object, on_absent, NULL, on_change, on_error},
	                                                .arg = c},
	                     e);
	return c->informer ? 0 : -1;
}

// Memory for a watch is needed from a callback of discovery, too, so there is no caller to return an error to.
static void open_one(struct namespace_watch *watched, const struct resource_watch *c)
{
	char key[AUTOSCALER_NAME_BYTES + 1];
	if (c->served != SERVED_YES || watched->of[c->kind].space)
		return;
	watched->of[c->kind] = (struct informer_item){0};
	snprintf(key, sizeof key, "%s/", watched->namespace_name);
	if (informer_put(c->informer, &watched->of[c->kind], key, NULL, NULL) < 0)
		abort(); // base/alloc.h
}

static struct namespace_watch *namespace_watch_get(struct conflict_watch *s, const char *namespace_name)
{
	struct namespace_watch *watched = hash_table_get(&s->namespaces, namespace_name, strlen(namespace_name),
	                                                 offsetof(struct namespace_watch, namespace_name));
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT && watched->n_wants == 0; kind++)
		open_one(watched, &s->of[kind]);
	watched->n_wants++;
	return watched;
}

static void namespace_watch_release(struct conflict_watch *s, struct namespace_watch *watched)
{
	if (--watched->n_wants > 0)
		return;
	HASH_DEL(s->namespaces, watched);
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++)
		informer_remove(&watched->of[kind]);
	free(watched);
}

// ---- which kinds the cluster serves ----

static bool is_same_version(int a, int b)
{
	return strcmp(autoscaler_kinds[a].group_version, autoscaler_kinds[b].group_version) == 0;
}

// Returns the kind that requests all kinds of its group version.
static struct resource_watch *asker_of(struct conflict_watch *s, int kind)
{
	int first = 0;
	while (!is_same_version(first, kind))
		first++;
	return &s->of[first];
}

// Repeats the request when a kind is not served: soon when a request failed. ms: the time until then otherwise.
static void ask_again_in(struct conflict_watch *s, int64_t ms)
{
	bool is_needed = false;
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++) {
		const struct resource_watch *c = &s->of[kind];
		if (c->asking)
			return; // its response comes here
		is_needed |= c->served != SERVED_YES && !skips(s, c->kind);
		ms = c->error && ms > CONFLICT_ASK_RETRY_MS ? CONFLICT_ASK_RETRY_MS : ms;
	}
	if (is_needed)
		timer_start(&s->ask_timer, ms + backoff_random_ms(ms / 10 + 1));
}

// A kind that is served in two versions is watched in one of them.
static bool is_watched_already(const struct conflict_watch *s, int kind)
{
	for (int i = 0; i < AUTOSCALER_KIND__COUNT; i++)
		if (s->of[i].served == SERVED_YES &&
		    strcmp(autoscaler_kinds[i].plural, autoscaler_kinds[kind].plural) == 0)
			return true;
	return false;
}

static void set_served(struct conflict_watch *s, struct resource_watch *c, const struct k8s_resource_list *list)
{
	bool is_served = false;
	for (size_t i = 0; i < list->n; i++)
		is_served |= strcmp(list->items[i].plural, autoscaler_kinds[c->kind].plural) == 0;
	c->served = is_served && !is_watched_already(s, (int)c->kind) ? SERVED_YES : SERVED_NO;
	struct namespace_watch *watched; // from now on the watch reports when the kind is uninstalled
	for (watched = s->namespaces; watched; watched = watched->hh.next)
		open_one(watched, c);
}

// error is NULL when the server responded.
static void set_error(struct resource_watch *c, const struct err *error)
{
	struct err e;
	char path[PATH_BYTES];
	free(c->error);
	c->error = NULL;
	if (!error)
		return;
	e = *error;
	path_of(c->kind, path);
	err_wrap(&e, "cannot find out whether the cluster has %ss: GET %s", autoscaler_kinds[c->kind].name, path);
	c->error = copy_text(e.msg);
}

static void on_asked(void *arg, const struct http_response *response, const struct err *error)
{
	struct resource_watch *asker = arg;
	struct conflict_watch *s = asker->s;
	struct k8s_resource_list list = {0};
	struct err e;
	asker->asking = NULL;
	if (error && error->kind == ERR_CANCELED)
		return;
	if (error && is_not_served(error))
		error = NULL;
	else if (response && discovery_decode(response->body, response->body_len, &list, &e) < 0)
		error = &e;
	for (int kind = (int)asker->kind; kind < AUTOSCALER_KIND__COUNT; kind++) {
		struct resource_watch *c = &s->of[kind];
		if (c->served == SERVED_YES || !is_same_version(kind, (int)asker->kind))
			continue;
		set_error(c, error);
		if (!error)
			set_served(s, c, &list);
	}
	free(list.items);
	ask_again_in(s, s->options.ask_ms);
	report_all(s);
}

static void ask(struct conflict_watch *s)
{
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++) {
		struct resource_watch *asker = asker_of(s, kind);
		char path[PATH_BYTES];
		struct err e;
		if (s->of[kind].served == SERVED_YES || asker->asking || skips(s, asker->kind))
			continue;
		path_of(asker->kind, path);
		asker->n_asked++;
		if (k8s_request_with(s->options.client,
		                     &(struct k8s_request_options){.method = "GET",
		                                                   .path = path,
		                                                   .timeout_ms = ASK_TIMEOUT_MS,
		                                                   .max_attempts = ASK_ATTEMPTS,
		                                                   .done = on_asked,
		                                                   .arg = asker},
		                     &asker->asking, &e) < 0)
			set_error(&s->of[kind], &e);
	}
	ask_again_in(s, CONFLICT_ASK_RETRY_MS);
}

static void on_ask_timer(evutil_socket_t fd, short what, void *arg)
{
	struct conflict_watch *s = arg;
	if (s->n_wants == 0)
		return;
	ask(s);
	report_all(s);
}

// A kind was uninstalled.
static void on_later(evutil_socket_t fd, short what, void *arg)
{
	struct conflict_watch *s = arg;
	struct namespace_watch *watched;
	for (watched = s->namespaces; watched; watched = watched->hh.next)
		for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++)
			if (s->of[kind].served == SERVED_NO)
				informer_remove(&watched->of[kind]);
	// Soon, because a server that is starting does not serve custom resources yet.
	int64_t ms = s->options.ask_ms;
	ask_again_in(s, ms < GONE_ASK_MS ? ms : GONE_ASK_MS);
	report_all(s);
}

// ---- public functions ----

struct conflict_watch *conflict_watch_new(const struct conflict_watch_options *options, struct err *e)
{
	assert(options->client && options->on_change && options->ask_ms >= 0);
	struct conflict_watch *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	s->options = *options;
	if (s->options.ask_ms == 0)
		s->options.ask_ms = CONFLICT_ASK_MS;
	struct event_base *loop = options->client->options.loop;
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
		conflict_watch_release(s->wants);
	event_del(&s->ask_timer);
	event_del(&s->later);
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++) {
		if (s->of[kind].asking)
			k8s_call_cancel(s->of[kind].asking);
		informer_free(s->of[kind].informer);
		free(s->of[kind].error);
	}
	free(s);
}

struct conflict_interest *conflict_watch_acquire(struct conflict_watch *s, const struct scale_ref *ref, void *user,
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
	struct conflict_interest *w = err_calloc(sizeof *w + strlen(group) + 1, e);
	if (!w)
		return NULL;
	w->s = s;
	w->user = user;
	memcpy(w->group, group, strlen(group) + 1);
	w->watched = namespace_watch_get(s, ref->namespace_name);
	w->target = get_target(s, ref->namespace_name, ref->kind, ref->name);
	DL_APPEND(w->target->wants, w);
	DL_APPEND2(s->wants, w, all_prev, all_next);
	if (s->n_wants++ == 0 && !evtimer_pending(&s->ask_timer, NULL))
		ask(s);
	w->reported = copy_text(conflict_watch_find(w)); // only later changes are reported
	w->error_reported = copy_text(conflict_watch_error(w));
	w->was_known = conflict_watch_is_known(w);
	return w;
}

void conflict_watch_release(struct conflict_interest *w)
{
	if (!w)
		return;
	struct conflict_watch *s = w->s;
	DL_DELETE(w->target->wants, w);
	DL_DELETE2(s->wants, w, all_prev, all_next);
	free_target_if_unused(s, w->target);
	namespace_watch_release(s, w->watched);
	s->n_wants--;
	free(w->reported);
	free(w->error_reported);
	free(w);
}
