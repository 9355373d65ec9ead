// SPDX-License-Identifier: Apache-2.0
// One object of the fake API server: get, create, change, delete, and its scale and status.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/http/http_server.h"
#include "base/json/json_read.h"
#include "test/fake/apiserver_private.h"
#include "test/support/http_request.h"

static bool is_dry_run(const struct fake_request *r)
{
	const char *value = http_exchange_query(r->x, "dryRun");
	return value && strcmp(value, "All") == 0;
}

// A tree of an object that is not stored, taken over.
static void reply_tree(struct fake_request *r, int status, cJSON *root)
{
	cJSON_DeleteItemFromObjectCaseSensitive(root, "kind");
	cJSON_DeleteItemFromObjectCaseSensitive(root, "apiVersion");
	struct fake_text *text = fake_text_of(root);
	fake_reply_object(r, status, r->path.kind, text);
	fake_text_drop(text);
	cJSON_Delete(root);
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

static const char *written_version(const cJSON *written)
{
	return json_get_str(json_get(written, "metadata"), "resourceVersion", "");
}

static bool version_is_wrong(const struct fake_object *o, const cJSON *written)
{
	const char *version = written_version(written);
	return version[0] && strcmp(version, fake_object_version(o)) != 0;
}

static void reply_invalid(struct fake_request *r, const char *message)
{
	fake_reply_status(r, 422, "Invalid", message, &r->path);
}

// Takes the new Scale (taken over): checks, stores, follows.
static void write_scale(struct fake_request *r, struct fake_object *o, cJSON *scale)
{
	int64_t replicas = 0;
	char message[400];
	int found = json_get_i64(json_get(scale, "spec"), "replicas", INT32_MIN, INT32_MAX, &replicas, NULL);
	if (found < 0) {
		reply_invalid(r, " \"\" is invalid: patch: Invalid value: spec.replicas is no 32 bit integer");
	} else if (replicas < 0) {
		snprintf(message, sizeof message,
		         "Scale.autoscaling \"%.200s\" is invalid: spec.replicas: Invalid value: %lld: must be greater "
		         "than or equal to 0",
		         r->path.name, (long long)replicas);
		reply_invalid(r, message);
	} else if (version_is_wrong(o, scale)) {
		fake_reply_conflict(r);
	} else if (is_dry_run(r)) {
		cJSON *reply = scale_of(o);
		fake_set(fake_sub(reply, "spec"), "replicas", cJSON_CreateNumber((double)replicas));
		fake_reply_json(r, 200, reply);
	} else {
		cJSON *root = cJSON_Duplicate(o->root, true);
		fake_set(fake_sub(root, "spec"), "replicas", cJSON_CreateNumber((double)replicas));
		fake_store_update(&r->f->store, o, root);
		cJSON *reply = scale_of(o); // before the "controllers" write the status
		fake_workload_follow(r->f, o);
		fake_reply_json(r, 200, reply);
	}
	cJSON_Delete(scale);
}

// What a write of `given` (taken over) makes of o. Of a write to /status only the status is kept, and the annotations
// where the kind is built in; of one to the object everything else, where the kind has that subresource.
static cJSON *merged(const struct fake_request *r, struct fake_object *o, cJSON *given)
{
	static const char *const kept[] = {"name",       "namespace",        "uid", "resourceVersion",
	                                   "generation", "creationTimestamp"};
	cJSON *next;
	if (strcmp(r->path.subresource, "status") == 0) {
		next = cJSON_Duplicate(o->root, true);
		fake_set(next, "status", cJSON_Duplicate(fake_sub(given, "status"), true));
		const cJSON *notes = json_get(json_get(given, "metadata"), "annotations");
		if (!r->path.kind->is_custom && notes)
			fake_set(fake_sub(next, "metadata"), "annotations", cJSON_Duplicate(notes, true));
		cJSON_Delete(given);
		return next;
	}
	next = given;
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
		const cJSON *old = json_get(json_get(o->root, "metadata"), kept[i]);
		if (old)
			fake_set(fake_sub(next, "metadata"), kept[i], cJSON_Duplicate(old, true));
		else
			cJSON_DeleteItemFromObjectCaseSensitive(fake_sub(next, "metadata"), kept[i]);
	}
	const cJSON *status = json_get(o->root, "status");
	if (o->kind->has_status)
		cJSON_DeleteItemFromObjectCaseSensitive(next, "status");
	if (o->kind->has_status && status)
		cJSON_AddItemToObject(next, "status", cJSON_Duplicate(status, true));
	return next;
}

static void write_object(struct fake_request *r, struct fake_object *o, cJSON *root)
{
	bool is_put = strcmp(r->verb, "update") == 0;
	char message[600];
	if (is_put && o->kind->needs_version && !written_version(root)[0]) {
		snprintf(message, sizeof message,
		         "%s%s%s \"%.200s\" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be "
		         "specified for an update",
		         r->path.plural, r->path.group[0] ? "." : "", r->path.group, r->path.name);
		reply_invalid(r, message);
		cJSON_Delete(root);
		return;
	}
	if (version_is_wrong(o, root)) {
		fake_reply_conflict(r);
		cJSON_Delete(root);
		return;
	}
	cJSON *next = merged(r, o, root);
	if (is_dry_run(r)) {
		reply_tree(r, 200, next);
		return;
	}
	fake_store_update(&r->f->store, o, next);
	struct fake_text *reply = fake_text_keep(o->text);
	if (o->kind->has_scale && !r->path.subresource[0])
		fake_workload_follow(r->f, o);
	fake_reply_object(r, 200, r->path.kind, reply);
	fake_text_drop(reply);
}

static bool is_patch_type(const struct fake_kind *kind, const char *type)
{
	return type && (strcmp(type, "application/merge-patch+json") == 0 ||
	                (!kind->is_custom && strcmp(type, "application/strategic-merge-patch+json") == 0));
}

static void change(struct fake_request *r, struct fake_object *o)
{
	size_t len;
	const char *body = http_exchange_body(r->x, &len), *type = http_exchange_header(r->x, "Content-Type");
	bool is_patch = strcmp(r->verb, "patch") == 0, is_scale = strcmp(r->path.subresource, "scale") == 0;
	if (is_patch && !is_patch_type(o->kind, type)) {
		fake_reply_status(r, 415, "UnsupportedMediaType", "415: Unsupported Media Type", NULL);
		return;
	}
	cJSON *given = json_read(body, len, NULL);
	if (!given || !cJSON_IsObject(given)) {
		cJSON_Delete(given);
		if (is_patch)
			fake_reply_status(r, 400, "BadRequest", "error decoding patch: unexpected end of JSON input",
			                  NULL);
		else
			fake_reply_status(r, 400, "BadRequest", "the object provided is unrecognized", NULL);
		return;
	}
	if (is_patch) {
		cJSON *patched = fake_merge_patch(is_scale ? scale_of(o) : cJSON_Duplicate(o->root, true), given);
		cJSON_Delete(given);
		given = patched;
	}
	if (is_scale)
		write_scale(r, o, given);
	else
		write_object(r, o, given);
}

// ---- create and delete ----

// Why the object cannot be, or NULL.
static const char *fault_of(const struct fake_request *r, const cJSON *root)
{
	const char *of = json_get_str(json_get(root, "involvedObject"), "namespace", "");
	// Events about objects without a namespace live in `default`.
	if (strcmp(r->path.kind->kind, "Event") == 0 && strcmp(of[0] ? of : "default", r->path.ns) != 0)
		return "involvedObject.namespace: Invalid value: does not match event.namespace";
	return NULL;
}

static void create(struct fake_request *r)
{
	size_t len;
	char message[900], resource[700];
	const char *body = http_exchange_body(r->x, &len);
	const struct fake_kind *kind = r->path.kind;
	cJSON *root = json_read(body, len, NULL);
	const cJSON *metadata = json_get(root, "metadata");
	char name[300];
	snprintf(name, sizeof name, "%s", json_get_str(metadata, "name", ""));
	r->path.name = name;
	if (!cJSON_IsObject(root) || strcmp(json_get_str(root, "kind", ""), kind->kind) != 0) {
		fake_reply_status(r, 400, "BadRequest", "the object provided is unrecognized", NULL);
	} else if (!name[0] && !json_get_str(metadata, "generateName", "")[0]) {
		reply_invalid(r, "metadata.name: Required value: name or generateName is required");
	} else if (name[0] && fake_store_find(&r->f->store, kind, r->path.ns, name)) {
		fake_resource_text(&r->path, name, resource, sizeof resource);
		snprintf(message, sizeof message, "%s already exists", resource);
		fake_reply_status(r, 409, "AlreadyExists", message, &r->path);
	} else if (fault_of(r, root)) {
		snprintf(message, sizeof message, "%s \"%s\" is invalid: %s", kind->kind, name, fault_of(r, root));
		reply_invalid(r, message);
	} else if (is_dry_run(r)) {
		reply_tree(r, 201, root);
		return;
	} else {
		if (kind->has_status)
			cJSON_DeleteItemFromObjectCaseSensitive(root, "status");
		if (strcmp(kind->kind, "Pod") == 0)
			fake_set(fake_sub(root, "status"), "phase", cJSON_CreateString("Pending"));
		struct fake_object *o = fake_store_add(&r->f->store, kind, r->path.ns, root);
		if (!o) {
			fake_reply_status(r, 507, "", "the fake API server is full", NULL);
			return;
		}
		struct fake_text *reply = fake_text_keep(o->text);
		if (kind->has_scale)
			fake_workload_follow(r->f, o);
		fake_reply_object(r, 201, kind, reply);
		fake_text_drop(reply);
		return;
	}
	cJSON_Delete(root);
}

static void delete_object(struct fake_request *r, struct fake_object *o)
{
	cJSON *reply = cJSON_CreateObject();
	cJSON_AddStringToObject(reply, "kind", "Status");
	cJSON_AddStringToObject(reply, "apiVersion", "v1");
	cJSON_AddStringToObject(reply, "status", "Success");
	if (!is_dry_run(r)) {
		struct fake_object *owner = o->owner;
		if (o->kind->has_scale) {
			fake_workload_removed(r->f, o);
		} else if (owner) { // its workload creates another
			fake_workload_remove_pod(r->f, o);
			fake_workload_follow(r->f, owner);
		} else {
			fake_store_remove(&r->f->store, o);
		}
	}
	fake_reply_json(r, 200, reply);
}

// A pod goes at once; a PodDisruptionBudget that refuses is a fault of the test (apiserver_fault.h).
static void evict(struct fake_request *r, struct fake_object *o)
{
	size_t len;
	const char *body = http_exchange_body(r->x, &len);
	cJSON *root = json_read(body, len, NULL);
	const cJSON *rules = json_get(json_get(root, "deleteOptions"), "preconditions");
	const char *wanted = json_get_str(rules, "uid", NULL);
	bool is_other = wanted && strcmp(wanted, json_get_str(json_get(o->root, "metadata"), "uid", "")) != 0;
	bool is_eviction = strcmp(json_get_str(root, "kind", ""), "Eviction") == 0;
	cJSON_Delete(root);
	if (!is_eviction)
		fake_reply_status(r, 400, "BadRequest", "the object provided is unrecognized", NULL);
	else if (is_other)
		fake_reply_conflict(r);
	else
		delete_object(r, o);
}

static bool is_subresource(const struct fake_kind *kind, const char *name)
{
	return !name[0] || (strcmp(name, "eviction") == 0 && strcmp(kind->kind, "Pod") == 0) ||
	       (strcmp(name, "status") == 0 && kind->has_status) || (strcmp(name, "scale") == 0 && kind->has_scale);
}

static void on_collection(struct fake_request *r)
{
	if (strcmp(r->verb, "list") == 0)
		fake_list(r);
	else if (strcmp(r->verb, "watch") == 0)
		fake_watch(r);
	else if (strcmp(r->verb, "create") == 0 && (r->path.ns[0] || r->path.kind->is_cluster_wide))
		create(r);
	else
		fake_reply_bad_method(r);
}

void fake_resource(struct fake_request *r)
{
	const struct fake_path *p = &r->path;
	if (!is_subresource(p->kind, p->subresource)) {
		fake_reply_no_resource(r);
		return;
	}
	if (!p->name[0]) {
		on_collection(r);
		return;
	}
	struct fake_object *o = fake_store_find(&r->f->store, p->kind, p->ns, p->name);
	bool is_get = strcmp(r->verb, "get") == 0, is_delete = strcmp(r->verb, "delete") == 0 && !p->subresource[0];
	bool is_change = strcmp(r->verb, "patch") == 0 || strcmp(r->verb, "update") == 0;
	bool is_eviction = strcmp(p->subresource, "eviction") == 0;
	if (is_eviction ? strcmp(r->verb, "create") != 0 : !is_get && !is_change && !is_delete)
		fake_reply_bad_method(r);
	else if (!o)
		fake_reply_not_found(r);
	else if (is_eviction)
		evict(r, o);
	else if (is_change)
		change(r, o);
	else if (is_delete)
		delete_object(r, o);
	else if (strcmp(p->subresource, "scale") == 0)
		fake_reply_json(r, 200, scale_of(o));
	else
		fake_reply_object(r, 200, p->kind, o->text);
}
