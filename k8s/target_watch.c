// SPDX-License-Identifier: Apache-2.0
// The watches behind the store of targets: one per kind and namespace, or one of all namespaces.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "k8s/target_store_private.h"
#include "k8s/watch.h"

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
	return target_find(w->store, w->kind, namespace_name, name);
}

static void on_object(void *arg, const char *json, size_t len)
{
	struct target_watch *w = arg;
	struct target_record *r = find_object(w, json, len);
	if (!r)
		return; // nobody's
	r->seen = w->store->lists;
	target_apply(r, json, len);
}

static void on_deleted(void *arg, const char *json, size_t len)
{
	struct target_record *r = find_object(arg, json, len);
	if (r)
		target_set_absent(r);
}

void target_watch_free(struct target_watch *w)
{
	struct target_store *s = w->store;
	assert(!w->records);
	k8s_watch_free(w->watch);
	DL_DELETE(s->watches, w);
	w->kind->n_watches--;
	if (w->kind->all == w)
		w->kind->all = NULL;
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
		target_watch_free(w);
	}
}

static void on_synced(void *arg)
{
	struct target_watch *w = arg;
	struct target_record *r;
	w->is_synced = true;
	if (w->kind->all == w)
		absorb(w);
	DL_FOREACH(w->records, r)
	{
		if (r->seen < w->list)
			target_set_absent(r);
	}
	target_store_wake(w->store);
}

static void on_error(void *arg, const struct err *error)
{
	struct target_watch *w = arg;
	const struct target_store_options *o = &w->store->options;
	w->is_broken = error != NULL;
	snprintf(w->why, sizeof w->why, "%s", error ? error->msg : "");
	target_store_wake(w->store);
	if (!o->on_error)
		return;
	char what[TARGET_NAME_BYTES + DISCOVERY_NAME_BYTES + 64];
	snprintf(what, sizeof what, "%s in %s%s", w->kind->plural,
	         w->namespace_name[0] ? "namespace " : "all namespaces", w->namespace_name);
	o->on_error(o->arg, what, error);
}

static struct target_watch *watch_start(struct target_store *s, struct target_kind *kind, const char *namespace_name,
                                        struct err *e)
{
	char path[TARGET_NAME_BYTES + DISCOVERY_GROUP_BYTES + DISCOVERY_NAME_BYTES + 64];
	size_t size = strlen(namespace_name) + 1;
	struct target_watch *w = calloc(1, sizeof *w + size);
	if (!w) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	w->store = s;
	w->kind = kind;
	memcpy(w->namespace_name, namespace_name, size);
	snprintf(path, sizeof path, "%s%s%s%s/%s", strchr(kind->api_version, '/') ? "/apis/" : "/api/",
	         kind->api_version, namespace_name[0] ? "/namespaces/" : "", namespace_name, kind->plural);
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
	kind->n_watches++;
	if (!namespace_name[0])
		kind->all = w;
	return w;
}

struct target_watch *target_watch_of(struct target_store *s, struct target_kind *kind, const char *namespace_name,
                                     struct err *e)
{
	struct target_watch *all = kind->all, *w;
	if (all && all->is_synced)
		return all;
	DL_FOREACH(s->watches, w)
	{
		if (w->kind == kind && strcmp(w->namespace_name, namespace_name) == 0)
			return w;
	}
	if (all)
		return all;
	return watch_start(s, kind, kind->n_watches < TARGET_NAMESPACES_MAX ? namespace_name : "", e);
}
