// SPDX-License-Identifier: Apache-2.0
// Kinds of the fake API server: paths, discovery, objects as JSON.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/err.h"
#include "base/http_server.h"
#include "base/json_read.h"
#include "base/num.h"
#include "test/fake/apiserver_private.h"

// ---- discovery ----

static void add_resource(cJSON *list, const struct fake_kind *k, const char *subresource)
{
	static const char *const verbs[] = {"create", "delete", "get", "list", "patch", "update"};
	char name[128];
	bool is_scale = strcmp(subresource, "scale") == 0;
	snprintf(name, sizeof name, "%s%s%s", k->plural, subresource[0] ? "/" : "", subresource);
	cJSON *r = cJSON_CreateObject();
	cJSON_AddStringToObject(r, "name", name);
	cJSON_AddStringToObject(r, "singularName", "");
	cJSON_AddBoolToObject(r, "namespaced", true);
	if (is_scale) {
		cJSON_AddStringToObject(r, "group", "autoscaling");
		cJSON_AddStringToObject(r, "version", "v1");
	}
	cJSON_AddStringToObject(r, "kind", is_scale ? "Scale" : k->kind);
	cJSON_AddItemToObject(r, "verbs",
	                      subresource[0]
	                              ? cJSON_CreateStringArray((const char *const[]){"get", "patch", "update"}, 3)
	                              : cJSON_CreateStringArray(verbs, sizeof verbs / sizeof verbs[0]));
	cJSON_AddItemToArray(list, r);
}

void fake_discovery(struct http_exchange *x, const struct fake_path *p)
{
	char group_version[300];
	snprintf(group_version, sizeof group_version, "%s%s%s", p->group, p->group[0] ? "/" : "", p->version);
	cJSON *root = cJSON_CreateObject(), *list;
	cJSON_AddStringToObject(root, "kind", "APIResourceList");
	cJSON_AddStringToObject(root, "apiVersion", "v1");
	cJSON_AddStringToObject(root, "groupVersion", group_version);
	list = cJSON_AddArrayToObject(root, "resources");
	for (size_t i = 0; i < fake_n_kinds; i++) {
		const struct fake_kind *k = &fake_kinds[i];
		if (strcmp(k->group, p->group) != 0 || strcmp(k->version, p->version) != 0)
			continue;
		add_resource(list, k, "");
		if (k->has_scale)
			add_resource(list, k, "scale");
		add_resource(list, k, "status");
	}
	if (cJSON_GetArraySize(list) > 0) {
		fake_reply_json(x, 200, root);
		return;
	}
	cJSON_Delete(root);
	http_exchange_reply_text(x, 404, "404 page not found\n");
}

// ---- one object ----

static bool is_dry_run(struct http_exchange *x)
{
	const char *value = http_exchange_query(x, "dryRun");
	return value && strcmp(value, "All") == 0;
}

static cJSON *scale_of(const struct fake_object *o)
{
	cJSON *root = cJSON_CreateObject(), *metadata, *status;
	static const char *const copied[] = {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"};
	cJSON_AddStringToObject(root, "kind", "Scale");
	cJSON_AddStringToObject(root, "apiVersion", "autoscaling/v1");
	metadata = cJSON_AddObjectToObject(root, "metadata");
	for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
		cJSON_AddStringToObject(metadata, copied[i],
		                        json_get_str(json_get(o->root, "metadata"), copied[i], ""));
	cJSON_AddNumberToObject(cJSON_AddObjectToObject(root, "spec"), "replicas", fake_object_replicas(o));
	status = cJSON_AddObjectToObject(root, "status");
	int64_t replicas = 0;
	json_get_i64(json_get(o->root, "status"), "replicas", 0, INT32_MAX, &replicas, NULL);
	cJSON_AddNumberToObject(status, "replicas", (double)replicas);
	char *selector = fake_object_selector(o);
	cJSON_AddStringToObject(status, "selector", selector ? selector : "");
	free(selector);
	return root;
}

static bool version_is_wrong(const struct fake_object *o, const cJSON *written)
{
	const char *version = json_get_str(json_get(written, "metadata"), "resourceVersion", "");
	return version[0] && strcmp(version, fake_object_version(o)) != 0;
}

static void reply_invalid(struct http_exchange *x, const char *message, const struct fake_path *p)
{
	fake_reply_status(x, 422, "Invalid", message, p);
}

// Takes the new Scale (taken over): checks, stores, follows.
static void write_scale(struct fake_apiserver *f, struct http_exchange *x, const struct fake_path *p,
                        struct fake_object *o, cJSON *scale)
{
	int64_t replicas = 0;
	char message[400];
	int found = json_get_i64(json_get(scale, "spec"), "replicas", INT32_MIN, INT32_MAX, &replicas, NULL);
	if (found < 0) {
		reply_invalid(x, " \"\" is invalid: patch: Invalid value: spec.replicas is no 32 bit integer", p);
	} else if (replicas < 0) {
		snprintf(message, sizeof message,
		         "Scale.autoscaling \"%.200s\" is invalid: spec.replicas: Invalid value: %lld: must be greater "
		         "than or "
		         "equal to 0",
		         p->name, (long long)replicas);
		reply_invalid(x, message, p);
	} else if (version_is_wrong(o, scale)) {
		fake_reply_conflict(x, p);
	} else if (is_dry_run(x)) {
		cJSON *reply = scale_of(o);
		fake_set(fake_sub(reply, "spec"), "replicas", cJSON_CreateNumber((double)replicas));
		fake_reply_json(x, 200, reply);
	} else {
		cJSON *root = cJSON_Duplicate(o->root, true);
		fake_set(fake_sub(root, "spec"), "replicas", cJSON_CreateNumber((double)replicas));
		fake_store_update(&f->store, o, root);
		cJSON *reply = scale_of(o); // before the "controllers" write the status
		fake_workload_follow(f, o);
		fake_reply_json(x, 200, reply);
	}
	cJSON_Delete(scale);
}

// Takes the new object over. Of a write to /status only the status is kept, of one to the object everything else.
static void write_object(struct fake_apiserver *f, struct http_exchange *x, const struct fake_path *p,
                         struct fake_object *o, cJSON *root)
{
	if (version_is_wrong(o, root)) {
		fake_reply_conflict(x, p);
		cJSON_Delete(root);
		return;
	}
	cJSON *next;
	if (strcmp(p->subresource, "status") == 0) {
		next = cJSON_Duplicate(o->root, true);
		fake_set(next, "status", cJSON_Duplicate(fake_sub(root, "status"), true));
	} else {
		static const char *const kept[] = {"name",       "namespace",        "uid", "resourceVersion",
		                                   "generation", "creationTimestamp"};
		next = cJSON_Duplicate(root, true);
		for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
			fake_set(fake_sub(next, "metadata"), kept[i],
			         cJSON_Duplicate(json_get(json_get(o->root, "metadata"), kept[i]), true));
		fake_set(next, "status", cJSON_Duplicate(fake_sub(o->root, "status"), true));
	}
	cJSON_Delete(root);
	if (is_dry_run(x)) {
		fake_reply_json(x, 200, next);
		return;
	}
	fake_store_update(&f->store, o, next);
	cJSON *reply = cJSON_Duplicate(o->root, true);
	if (o->kind->has_scale && !p->subresource[0])
		fake_workload_follow(f, o);
	fake_reply_json(x, 200, reply);
}

static void change(struct fake_apiserver *f, struct http_exchange *x, const struct fake_path *p, struct fake_object *o)
{
	size_t len;
	const char *body = http_exchange_body(x, &len), *type = http_exchange_header(x, "Content-Type");
	bool is_patch = strcmp(http_exchange_method(x), "PATCH") == 0, is_scale = strcmp(p->subresource, "scale") == 0;
	if (is_patch && (!type || (strcmp(type, "application/merge-patch+json") != 0 &&
	                           strcmp(type, "application/strategic-merge-patch+json") != 0))) {
		fake_reply_status(x, 415, "UnsupportedMediaType", "415: Unsupported Media Type", NULL);
		return;
	}
	cJSON *given = json_read(body, len, NULL);
	if (!given || !cJSON_IsObject(given)) {
		cJSON_Delete(given);
		if (is_patch)
			fake_reply_status(x, 500, "", "Invalid JSON Patch", NULL);
		else
			fake_reply_status(x, 400, "BadRequest", "the object provided is unrecognized", NULL);
		return;
	}
	if (is_patch) {
		cJSON *patched = fake_merge_patch(is_scale ? scale_of(o) : cJSON_Duplicate(o->root, true), given);
		cJSON_Delete(given);
		given = patched;
	}
	if (is_scale)
		write_scale(f, x, p, o, given);
	else
		write_object(f, x, p, o, given);
}

// ---- collections ----

static void list_objects(struct fake_apiserver *f, struct http_exchange *x, const struct fake_path *p)
{
	const char *selector = http_exchange_query(x, "labelSelector"), *limit_text = http_exchange_query(x, "limit");
	const char *from_text = http_exchange_query(x, "continue"), *watch = http_exchange_query(x, "watch");
	int64_t limit = INT32_MAX, from = 0;
	bool is_bad = false;
	if (watch && strcmp(watch, "false") != 0 && strcmp(watch, "0") != 0) {
		fake_reply_status(x, 400, "BadRequest", "watch is not supported by the fake API server", NULL);
		return;
	}
	if ((limit_text && num_parse_i64(limit_text, strlen(limit_text), 0, INT32_MAX, &limit, NULL) < 0) ||
	    (from_text && num_parse_i64(from_text, strlen(from_text), 1, INT64_MAX, &from, NULL) < 0)) {
		fake_reply_status(x, 400, "BadRequest", "invalid limit or continue token", NULL);
		return;
	}
	if (limit == 0)
		limit = INT32_MAX;
	cJSON *root = cJSON_CreateObject(), *metadata, *items;
	char text[64];
	snprintf(text, sizeof text, "%sList", p->kind->kind);
	cJSON_AddStringToObject(root, "kind", text);
	snprintf(text, sizeof text, "%s%s%s", p->kind->group, p->kind->group[0] ? "/" : "", p->kind->version);
	cJSON_AddStringToObject(root, "apiVersion", text);
	metadata = cJSON_AddObjectToObject(root, "metadata");
	items = cJSON_AddArrayToObject(root, "items");
	snprintf(text, sizeof text, "%llu", (unsigned long long)f->store.version);
	cJSON_AddStringToObject(metadata, "resourceVersion", text);
	struct fake_object *o;
	uint64_t last = 0;
	int64_t n = 0;
	DL_FOREACH(f->store.objects, o)
	{
		if (o->kind != p->kind || o->seq <= (uint64_t)from ||
		    (p->ns[0] && strcmp(fake_object_namespace(o), p->ns) != 0) ||
		    (selector && !fake_labels_match(o, selector, &is_bad)))
			continue;
		if (n == limit) {
			snprintf(text, sizeof text, "%llu", (unsigned long long)last);
			cJSON_AddStringToObject(metadata, "continue", text);
			break;
		}
		cJSON_AddItemToArray(items, cJSON_Duplicate(o->root, true));
		last = o->seq;
		n++;
	}
	if (!is_bad) {
		fake_reply_json(x, 200, root);
		return;
	}
	cJSON_Delete(root);
	fake_reply_status(x, 400, "BadRequest", "unable to parse requirement: the fake knows only a=b,c=d", NULL);
}

static void create(struct fake_apiserver *f, struct http_exchange *x, const struct fake_path *p)
{
	size_t len;
	const char *body = http_exchange_body(x, &len);
	cJSON *root = json_read(body, len, NULL);
	struct fake_path named = *p;
	snprintf(named.text, sizeof named.text, "%.500s", json_get_str(json_get(root, "metadata"), "name", ""));
	named.name = named.text;
	if (!cJSON_IsObject(root) || strcmp(json_get_str(root, "kind", ""), p->kind->kind) != 0) {
		fake_reply_status(x, 400, "BadRequest", "the object provided is unrecognized", NULL);
	} else if (!named.name[0]) {
		reply_invalid(x, "metadata.name: Required value: name or generateName is required", &named);
	} else if (fake_store_find(&f->store, p->kind, p->ns, named.name)) {
		char message[900];
		snprintf(message, sizeof message, "%s%s%s \"%s\" already exists", p->plural, p->group[0] ? "." : "",
		         p->group, named.name);
		fake_reply_status(x, 409, "AlreadyExists", message, &named);
	} else if (is_dry_run(x)) {
		fake_reply_json(x, 201, root);
		return;
	} else {
		if (strcmp(p->kind->kind, "Pod") == 0)
			fake_set(fake_sub(root, "status"), "phase", cJSON_CreateString("Pending"));
		else if (p->kind->has_scale)
			cJSON_DeleteItemFromObjectCaseSensitive(root, "status");
		struct fake_object *o = fake_store_add(&f->store, p->kind, p->ns, root);
		if (!o) {
			fake_reply_status(x, 507, "", "the fake API server is full", NULL);
			return;
		}
		cJSON *reply = cJSON_Duplicate(o->root, true);
		if (p->kind->has_scale)
			fake_workload_follow(f, o);
		fake_reply_json(x, 201, reply);
		return;
	}
	cJSON_Delete(root);
}

static void delete_object(struct fake_apiserver *f, struct http_exchange *x, struct fake_object *o)
{
	cJSON *reply = cJSON_CreateObject();
	cJSON_AddStringToObject(reply, "kind", "Status");
	cJSON_AddStringToObject(reply, "apiVersion", "v1");
	cJSON_AddStringToObject(reply, "status", "Success");
	if (!is_dry_run(x)) {
		struct fake_object *owner = o->owner;
		if (o->kind->has_scale) {
			fake_workload_removed(f, o);
		} else if (owner) { // its workload makes another one
			fake_workload_remove_pod(f, o);
			fake_workload_follow(f, owner);
		} else {
			fake_store_remove(&f->store, o);
		}
	}
	fake_reply_json(x, 200, reply);
}

void fake_resource(struct fake_apiserver *f, struct http_exchange *x, const struct fake_path *p)
{
	const char *method = http_exchange_method(x);
	bool is_scale = strcmp(p->subresource, "scale") == 0;
	bool is_known = !p->subresource[0] || strcmp(p->subresource, "status") == 0 || (is_scale && p->kind->has_scale);
	if (!is_known) {
		fake_reply_no_resource(x);
		return;
	}
	if (!p->name[0]) {
		if (strcmp(method, "GET") == 0)
			list_objects(f, x, p);
		else if (strcmp(method, "POST") == 0 && p->ns[0])
			create(f, x, p);
		else
			fake_reply_bad_method(x);
		return;
	}
	struct fake_object *o = fake_store_find(&f->store, p->kind, p->ns, p->name);
	bool is_change = strcmp(method, "PATCH") == 0 || strcmp(method, "PUT") == 0;
	bool is_delete = strcmp(method, "DELETE") == 0 && !p->subresource[0];
	if (strcmp(method, "GET") != 0 && !is_change && !is_delete)
		fake_reply_bad_method(x);
	else if (!o)
		fake_reply_not_found(x, p);
	else if (is_change)
		change(f, x, p, o);
	else if (is_delete)
		delete_object(f, x, o);
	else
		fake_reply_json(x, 200, is_scale ? scale_of(o) : cJSON_Duplicate(o->root, true));
}
