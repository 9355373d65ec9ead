// SPDX-License-Identifier: Apache-2.0
#include "controller/source/object_watch.h"

#include "base/base.h"
#include "base/json/json_span.h"
#include "policies/schema/policy_schema.h"

static struct watched_object *new_object(const char *namespace_name, const char *name)
{
	size_t space_len = strlen(namespace_name), size = space_len + 1 + strlen(name) + 1;
	struct watched_object *o = must_alloc(calloc(1, sizeof *o + size));
	snprintf(o->key, size, "%s/%s", namespace_name, name);
	o->name = o->key + space_len + 1;
	return o;
}

static void free_object(struct watched_object *o)
{
	informer_remove(&o->item);
	free(o);
}

// ---- callbacks of the informer ----

static enum object_change note_change(struct watched_object *o, struct json_span metadata)
{
	char uid[WATCHED_UID_BYTES];
	int64_t generation = 0;
	json_span_text(json_span_get(metadata, "uid"), uid, sizeof uid);
	json_span_i64(json_span_get(metadata, "generation"), 0, INT64_MAX, &generation);
	bool is_known = o->item.space != NULL, is_same = strcmp(uid, o->uid) == 0;
	bool is_status = generation > 0 && generation == o->generation;
	memcpy(o->uid, uid, sizeof o->uid);
	o->generation = generation;
	return !is_known || !is_same ? OBJECT_NEW : is_status ? OBJECT_STATUS : OBJECT_SPEC;
}

static void on_absent(void *arg, struct informer_item *item)
{
	const struct object_watch *w = arg;
	struct watched_object *o = (void *)item;
	w->options.on_gone(w->options.arg, o);
	free_object(o);
}

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	struct object_watch *w = arg;
	const struct json_span object = {json, len}, metadata = json_span_get(object, "metadata");
	if (json_span_kind(json_span_get(metadata, "deletionTimestamp")) == '"') {
		if (item)
			on_absent(w, item);
		return;
	}
	struct watched_object *o = item ? (void *)item : new_object(namespace_name, name);
	enum object_change change = note_change(o, metadata);
	if (!w->options.on_object(w->options.arg, o, change, json, len))
		free_object(o);
	else if (!item)
		(void)informer_put(w->informer, &o->item, o->key, "", NULL);
}

static void report_answer(struct object_watch *w)
{
	w->has_answer = true;
	w->options.on_answer(w->options.arg);
}

static void on_change(void *arg)
{
	struct object_watch *w = arg;
	uint32_t list = informer_get_state(w->informer, &w->all).synced_list;
	if (list == w->list)
		return;
	w->list = list;
	report_answer(w);
}

static void on_error(void *arg, const char *what, const struct err *error)
{
	struct object_watch *w = arg;
	struct err e;
	if (error) {
		e = *error;
		if (e.kind == ERR_NOT_FOUND && e.code == 404)
			snprintf(e.msg, sizeof e.msg, "the cluster has no resource %s.%s; install %s",
			         w->options.plural, w->options.group_version,
			         strcmp(w->options.group_version, POLICY_API_VERSION) == 0
			                 ? "it: gpuscale crd | kubectl apply -f -"
			                 : "its CustomResourceDefinition");
	}
	if (error ? w->error && strcmp(w->error, e.msg) == 0 : !w->error)
		return;
	free(w->error);
	w->error = error ? must_alloc(strdup(e.msg)) : NULL;
	w->options.on_error(w->options.arg, error ? &e : NULL);
	if (error && !w->has_answer)
		report_answer(w);
}

// ---- public functions ----

struct object_watch *object_watch_new(const struct object_watch_options *options, struct err *e)
{
	struct object_watch *w = must_alloc(calloc(1, sizeof *w));
	char key[INFORMER_KEY_BYTES], group_path[INFORMER_RESOURCE_BYTES];
	w->options = *options;
	if (!w->options.group_version)
		w->options.group_version = POLICY_API_VERSION;
	snprintf(group_path, sizeof group_path, "/apis/%s", w->options.group_version);
	snprintf(key, sizeof key, "%s/", options->namespace_name ? options->namespace_name : "");
	w->informer = informer_new(&(struct informer_options){.client = options->client,
	                                                      .group_path = group_path,
	                                                      .plural = options->plural,
	                                                      .is_cluster_scoped = options->is_cluster_scoped,
	                                                      .callbacks = {.on_object = on_object,
	                                                                    .on_absent = on_absent,
	                                                                    .on_change = on_change,
	                                                                    .on_error = on_error},
	                                                      .arg = w},
	                           e);
	if (w->informer && informer_put(w->informer, &w->all, key, NULL, e) == 0)
		return w;
	object_watch_free(w);
	return NULL;
}

void object_watch_stop(struct object_watch *w)
{
	if (w)
		informer_remove(&w->all);
}

void object_watch_free(struct object_watch *w)
{
	if (!w)
		return;
	// Removed first, so that the informer does not report them absent.
	while (w->informer && informer_list(w->informer))
		free_object((void *)informer_list(w->informer));
	informer_remove(&w->all);
	informer_free(w->informer);
	free(w->error);
	free(w);
}

void object_watch_verify(struct object_watch *w, const char *namespace_name, const char *name)
{
	struct informer_item *item = w ? informer_get(w->informer, namespace_name, name) : NULL;
	if (item)
		(void)informer_refetch(item, 0);
}
