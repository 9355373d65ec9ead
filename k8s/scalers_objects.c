// SPDX-License-Identifier: Apache-2.0
// What the scalers' watches have shown, by what is scaled; who drives a target, and who is told when that changes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/err.h"
#include "k8s/scalers_private.h"

#define KEY_BYTES (3 * SCALER_NAME_BYTES + SCALER_KIND_BYTES)

char *scalers_copy(const char *text)
{
	char *out = strdup(text);
	if (!out)
		abort(); // no memory for a name: the supervisor restarts us
	return out;
}

void *scalers_make(size_t size)
{
	void *out = calloc(1, size);
	if (!out)
		abort();
	return out;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

// ---- the answer ----

static const struct scaler *first_of(const struct scalers_want *w)
{
	const struct scaler *best = NULL, *r;
	DL_FOREACH2(w->target->scalers, r, target_next)
	{
		// A HPA without an apiVersion finds nothing today; it is named nevertheless, for it was meant to.
		if (r->group[0] && strcmp(r->group, w->group) != 0)
			continue;
		if (!best || r->rank < best->rank || (r->rank == best->rank && strcmp(r->text, best->text) < 0))
			best = r;
	}
	return best;
}

const char *scalers_owner(const struct scalers_want *w)
{
	const struct scaler *r = first_of(w);
	return r ? r->text : NULL;
}

bool scalers_scope_is_settled(const struct scalers *s, const struct scope *scope)
{
	const struct collection *hpas = &scope->of[SCALER_HPA], *keda = &scope->of[SCALER_SCALED_OBJECT];
	bool no_keda = s->keda == KEDA_ABSENT || s->keda_error;
	return (hpas->is_synced || hpas->error) && (no_keda || keda->is_synced || keda->error);
}

// The scope that answers for a namespace.
static const struct scope *scope_of(const struct space *space, const struct scalers *s)
{
	return space->scope ? space->scope : s->all;
}

bool scalers_is_known(const struct scalers_want *w)
{
	return scalers_scope_is_settled(w->s, scope_of(w->space, w->s));
}

const char *scalers_error(const struct scalers_want *w)
{
	const struct scope *scope = scope_of(w->space, w->s);
	for (int kind = SCALER_KIND__COUNT - 1; kind >= 0; kind--) {
		if (scope->of[kind].error)
			return scope->of[kind].error;
	}
	return w->s->keda_error;
}

static void tell(struct scalers_want *w)
{
	const char *owner = scalers_owner(w), *error = scalers_error(w);
	bool is_known = scalers_is_known(w);
	if (is_same(owner, w->said) && is_same(error, w->error_said) && is_known <= w->was_known)
		return;
	free(w->said);
	free(w->error_said);
	w->said = owner ? scalers_copy(owner) : NULL;
	w->error_said = error ? scalers_copy(error) : NULL;
	w->was_known = w->was_known || is_known;
	w->s->options.on_change(w->s->options.arg, w->user);
}

static void tell_target(struct target *t)
{
	struct scalers_want *w;
	DL_FOREACH(t->wants, w)
	{
		tell(w);
	}
}

void scalers_tell_all(struct scalers *s)
{
	struct scalers_want *w;
	DL_FOREACH2(s->wants, w, all_next)
	{
		tell(w);
	}
}

// ---- targets ----

struct target *scalers_target_get(struct scalers *s, const char *namespace_name, const char *kind, const char *name)
{
	char key[KEY_BYTES];
	struct target *t;
	snprintf(key, sizeof key, "%s/%s/%s", namespace_name, kind, name);
	HASH_FIND_STR(s->targets, key, t);
	if (t)
		return t;
	t = scalers_make(sizeof *t + strlen(key) + 1);
	memcpy(t->key, key, strlen(key) + 1);
	HASH_ADD_STR(s->targets, key, t);
	return t;
}

void scalers_target_release(struct scalers *s, struct target *t)
{
	if (t->scalers || t->wants)
		return;
	HASH_DEL(s->targets, t);
	free(t);
}

// ---- scalers ----

// Nobody is told: the caller does.
static void detach(struct collection *c, struct scaler *r)
{
	HASH_DEL(c->index, r);
	DL_DELETE(c->list, r);
	DL_DELETE2(r->target->scalers, r, target_prev, target_next);
	c->scope->s->n_objects--;
}

static void scaler_free(struct scaler *r)
{
	free(r->group);
	free(r->text);
	free(r);
}

static void drop(struct collection *c, struct scaler *r)
{
	struct target *t = r->target;
	detach(c, r);
	scaler_free(r);
	tell_target(t);
	scalers_target_release(c->scope->s, t);
}

static struct scaler *find(const struct collection *c, const struct scaler_object *o)
{
	char key[2 * SCALER_NAME_BYTES];
	struct scaler *r;
	snprintf(key, sizeof key, "%s/%s", o->namespace_name, o->name);
	HASH_FIND_STR(c->index, key, r);
	return r;
}

static struct scaler *attach(struct collection *c, const struct scaler_object *o)
{
	char key[2 * SCALER_NAME_BYTES], text[SCALERS_OWNER_BYTES];
	bool is_kedas = c->kind == SCALER_HPA && o->scaled_object[0];
	snprintf(key, sizeof key, "%s/%s", o->namespace_name, o->name);
	snprintf(text, sizeof text, "%s %s/%s", scaler_kind_name(is_kedas ? SCALER_SCALED_OBJECT : c->kind),
	         o->namespace_name, is_kedas ? o->scaled_object : o->name);
	struct scaler *r = scalers_make(sizeof *r + strlen(key) + 1);
	memcpy(r->key, key, strlen(key) + 1);
	r->of = c;
	r->rank = is_kedas ? SCALER_SCALED_OBJECT : (int)c->kind;
	r->group = scalers_copy(o->target_group);
	r->text = scalers_copy(text);
	r->target = scalers_target_get(c->scope->s, o->namespace_name, o->target_kind, o->target_name);
	HASH_ADD_STR(c->index, key, r);
	DL_APPEND(c->list, r);
	DL_APPEND2(r->target->scalers, r, target_prev, target_next);
	c->scope->s->n_objects++;
	return r;
}

void scalers_on_list(void *arg)
{
	struct collection *c = arg;
	c->round++;
}

void scalers_on_object(void *arg, const char *json, size_t len)
{
	struct collection *c = arg;
	struct scaler_object o;
	if (!scaler_decode(c->kind, json, len, &o))
		return;
	struct scaler *old = find(c, &o);
	struct target *left = old ? old->target : NULL;
	if (old) {
		detach(c, old);
		scaler_free(old);
	}
	if (o.has_target) {
		struct scaler *r = attach(c, &o);
		r->round = c->round;
		tell_target(r->target);
	}
	if (left) {
		tell_target(left);
		scalers_target_release(c->scope->s, left);
	}
}

void scalers_on_deleted(void *arg, const char *json, size_t len)
{
	struct collection *c = arg;
	struct scaler_object o;
	struct scaler *r = scaler_decode(c->kind, json, len, &o) ? find(c, &o) : NULL;
	if (r)
		drop(c, r);
}

void scalers_sweep(struct collection *c)
{
	struct scaler *r, *next;
	DL_FOREACH_SAFE(c->list, r, next)
	{
		if (r->round != c->round)
			drop(c, r);
	}
}

void scalers_forget(struct collection *c)
{
	while (c->list) {
		struct scaler *r = c->list;
		struct target *t = r->target;
		detach(c, r);
		scaler_free(r);
		scalers_target_release(c->scope->s, t);
	}
}
