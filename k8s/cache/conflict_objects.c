// SPDX-License-Identifier: Apache-2.0
// The reported autoscalers, by target; finds the conflicting autoscaler of a target and reports changes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/err.h"
#include "base/must.h"
#include "k8s/cache/conflict_watch_private.h"

#define KEY_BYTES (3 * AUTOSCALER_NAME_BYTES + AUTOSCALER_KIND_BYTES)

char *conflict_watch_copy(const char *text)
{
	return must_alloc(strdup(text));
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

// ---- the result ----

static const struct conflict *first_of(const struct conflict_interest *w)
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
	return best;
}

const char *conflict_watch_find(const struct conflict_interest *w)
{
	const struct conflict *c = first_of(w);
	return c ? c->text : NULL;
}

bool conflict_watch_is_known(const struct conflict_interest *w)
{
	static const struct informer_state unsynced = {.unsynced = 1};
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++) {
		const struct resource_watch *c = &w->s->of[kind];
		const struct informer_item *watched = w->watched->of[kind];
		if (c->served == SERVED_NO || c->error)
			continue;
		const struct informer_state state = watched ? informer_get_state(c->informer, watched) : unsynced;
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
		const struct informer_item *watched = w->watched->of[kind];
		bool is_watched = c->served == SERVED_YES && watched;
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
	w->reported = conflict ? conflict_watch_copy(conflict) : NULL;
	w->error_reported = error ? conflict_watch_copy(error) : NULL;
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

void conflict_watch_report_all(struct conflict_watch *s)
{
	struct conflict_interest *w;
	DL_FOREACH2(s->wants, w, all_next)
	{
		report(w);
	}
}

// ---- targets ----

struct target *conflict_watch_target_get(struct conflict_watch *s, const char *namespace_name, const char *kind,
                                         const char *name)
{
	char key[KEY_BYTES];
	struct target *t;
	snprintf(key, sizeof key, "%s/%s/%s", namespace_name, kind, name);
	HASH_FIND_STR(s->targets, key, t);
	if (t)
		return t;
	t = must_alloc(calloc(1, sizeof *t + strlen(key) + 1));
	memcpy(t->key, key, strlen(key) + 1);
	HASH_ADD_STR(s->targets, key, t);
	return t;
}

void conflict_watch_target_release(struct conflict_watch *s, struct target *t)
{
	if (t->conflicts || t->wants)
		return;
	HASH_DEL(s->targets, t);
	free(t);
}

// ---- conflicting autoscalers ----

static struct conflict *conflict_of(struct informer_item *item)
{
	uintptr_t at = (uintptr_t)item - offsetof(struct conflict, item);
	return item ? (struct conflict *)at : NULL;
}

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
	bool is_kedas = watch->kind == AUTOSCALER_HPA && o->scaled_object[0] &&
	                !conflict_watch_skips(watch->s, AUTOSCALER_SCALED_OBJECT);
	enum autoscaler_kind kind = is_kedas ? AUTOSCALER_SCALED_OBJECT : watch->kind;
	snprintf(text, sizeof text, "%s %s/%s", autoscaler_kinds[kind].name, o->namespace_name,
	         is_kedas ? o->scaled_object : o->name);
	c->rank = (int)kind;
	c->group = conflict_watch_copy(o->target_group);
	c->text = conflict_watch_copy(text);
	c->target = conflict_watch_target_get(watch->s, o->namespace_name, o->target_kind, o->target_name);
	DL_APPEND2(c->target->conflicts, c, target_prev, target_next);
}

static struct conflict *keep(const struct resource_watch *watch, const struct autoscaler_object *o)
{
	size_t size = strlen(o->namespace_name) + 1 + strlen(o->name) + 1;
	struct conflict *c = must_alloc(calloc(1, sizeof *c + size));
	snprintf(c->key, size, "%s/%s", o->namespace_name, o->name);
	(void)informer_put(watch->informer, &c->item, c->key, "", NULL);
	return c;
}

void conflict_watch_on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                              const char *json, size_t len)
{
	const struct resource_watch *watch = arg;
	struct conflict *c = conflict_of(item);
	struct autoscaler_object o;
	if (!autoscaler_decode(watch->kind, json, len, &o))
		return;
	struct target *left = c ? leave_target(c) : NULL;
	if (o.has_target) {
		c = c ? c : keep(watch, &o);
		join_target(watch, c, &o);
		report_target(c->target);
	} else if (c) {
		informer_remove(item);
		free(c);
	}
	if (left) {
		report_target(left);
		conflict_watch_target_release(watch->s, left);
	}
}

void conflict_watch_on_absent(void *arg, struct informer_item *item)
{
	const struct resource_watch *watch = arg;
	struct conflict *c = conflict_of(item);
	struct target *t = leave_target(c);
	informer_remove(item);
	free(c);
	report_target(t);
	conflict_watch_target_release(watch->s, t);
}
