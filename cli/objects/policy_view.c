// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/policy_view.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_span.h"
#include "base/num.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/status/scaled_object_doc.h"
#include "k8s/client/object_name.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

#define NAME_BYTES 254

void policy_views_init(struct policy_views *v, enum object_kind kind)
{
	*v = (struct policy_views){.kind = kind};
	arena_init(&v->arena, POLICY_VIEWS_ARENA_BYTES_MAX);
}

void policy_views_done(struct policy_views *v)
{
	free(v->items);
	free(v->faults);
	arena_done(&v->arena);
	*v = (struct policy_views){0};
}

static int64_t time_of(const struct doc_node *metadata, const char *key)
{
	const char *text = doc_get_text(metadata, key, "");
	int64_t ms = 0;
	return num_parse_rfc3339_ms(text, strlen(text), &ms, NULL) < 0 ? 0 : ms;
}

static bool is_true(const struct doc_node *map, const char *key)
{
	return strcmp(doc_get_text(map, key, ""), "true") == 0;
}

static int read_status(struct policy_views *v, struct policy_view *p, const struct doc_node *status, struct err *e)
{
	if (!status || status->kind == DOC_NULL)
		return 0;
	struct schema_errors *errors = malloc(2 * sizeof *errors);
	if (!errors)
		return err_set(e, ERR_INTERNAL, "out of memory");
	struct schema_errors *unknown = errors + 1;
	schema_errors_init(errors, NULL);
	schema_errors_init(unknown, NULL);
	schema_decode_tolerant(status_schema(), status, &p->status, &v->arena, errors, unknown, "status");
	if (errors->n > 0) { // no number is better than a wrong one
		p->status.current_set = p->status.desired_set = p->status.ready_set = false;
		p->status_fault = arena_printf(&v->arena, "%s: %s", errors->items[0].path, errors->items[0].message);
	}
	free(errors);
	return 0;
}

static int compare_targets(const void *a, const void *b)
{
	const struct policy_view *x = a, *y = b;
	int c = strcmp(x->target_kind, y->target_kind);
	return c ? c : strcmp(x->target_name, y->target_name);
}

static int read_targets(struct policy_views *v, struct policy_view *p, struct err *e)
{
	const struct doc_node *map = p->status.targets;
	if (!map || map->kind != DOC_MAP || map->n_children == 0)
		return 0;
	struct policy_view *targets = arena_alloc(&v->arena, map->n_children * sizeof *targets);
	for (const struct doc_node *c = map->child; targets && c; c = c->next) {
		struct policy_view *t = &targets[p->n_targets];
		const char *slash = strchr(c->key, '/');
		*t = (struct policy_view){0};
		if (read_status(v, t, c, e) < 0)
			return -1;
		const struct status_view status = t->status;
		const char *fault = t->status_fault;
		*t = *p;
		t->status = status;
		t->status_fault = fault;
		t->n_targets = 0;
		t->key = c->key;
		t->target_kind = slash ? arena_strndup(&v->arena, c->key, (size_t)(slash - c->key)) : "<invalid>";
		t->target_name = slash ? slash + 1 : c->key;
		if (!t->target_kind)
			break;
		p->n_targets++;
	}
	p->targets = targets;
	if (p->n_targets)
		qsort(targets, p->n_targets, sizeof *targets, compare_targets);
	return p->n_targets == map->n_children
	               ? 0
	               : err_set(e, ERR_LIMIT, "the objects need more than %zu bytes", v->arena.max_bytes);
}

// The text as written; `fallback` if the field is absent, "<invalid>" if it is not a text.
static const char *text_of(const struct doc_node *map, const char *key, const char *fallback)
{
	const struct doc_node *node = doc_get(map, key);
	if (!node || node->kind == DOC_NULL)
		return fallback;
	return node->kind == DOC_SCALAR ? node->text : "<invalid>";
}

static void read_gpus(struct policy_view *p, const struct doc_node *gpus)
{
	const char *text = text_of(gpus, "perReplica", "1");
	p->gpu_model = text_of(gpus, "model", "");
	p->gpus_per_replica = 0;
	if (gpus && gpus->kind == DOC_MAP &&
	    num_parse_i64(text, strlen(text), 1, POLICY_GPUS_PER_REPLICA_MAX, &p->gpus_per_replica, NULL) < 0)
		p->gpus_per_replica = 0;
}

// A ScaledObject has the status of its policy in a condition (controller/status/scaled_object_doc.h). Without one,
// Ready has the cause.
static int read_scaled_object(struct policy_views *v, struct policy_view *p, const struct doc_node *spec,
                              const struct doc_node *status, struct err *e)
{
	const struct doc_node *conditions = doc_get(status, "conditions"), *ready = NULL;
	struct doc_node *state = NULL;
	p->min = text_of(spec, "minReplicaCount", "0");
	p->max = text_of(spec, "maxReplicaCount", "100");
	for (const struct doc_node *c = conditions ? conditions->child : NULL; c; c = c->next) {
		const char *type = doc_get_text(c, "type", ""), *message = doc_get_text(c, "message", "");
		if (strcmp(type, "Ready") == 0)
			ready = c;
		else if (strcmp(type, "Paused") == 0)
			p->paused_annotation = strcmp(doc_get_text(c, "status", ""), "True") == 0;
		else if (strcmp(type, SCALED_OBJECT_STATE) == 0 &&
		         doc_from_json(&v->arena, message, strlen(message), &state, NULL) < 0)
			p->status_fault = "the condition " SCALED_OBJECT_STATE " is not JSON";
	}
	if (read_status(v, p, doc_get(state, "status"), e) < 0)
		return -1;
	p->status.reason = p->status.reason ? p->status.reason : doc_get_text(ready, "reason", NULL);
	p->status.message = p->status.message ? p->status.message : doc_get_text(ready, "message", NULL);
	return 0;
}

static int read_object(struct policy_views *v, struct policy_view *p, const struct doc_node *root, struct err *e)
{
	const struct doc_node *metadata = doc_get(root, "metadata"), *spec = doc_get(root, "spec");
	const struct doc_node *variants = doc_get(spec, "variants"), *target = doc_get(spec, "scaleTargetRef");
	const struct doc_node *fleet = doc_get(spec, "scaleTargets");
	if (!target && variants && variants->kind == DOC_SEQ) // the first one stands for all
		target = doc_get(variants->child, "scaleTargetRef");
	const char *generation = doc_get_text(metadata, "generation", "0");
	p->root = root;
	p->namespace_name = doc_get_text(metadata, "namespace", "");
	p->name = doc_get_text(metadata, "name", "");
	p->uid = doc_get_text(metadata, "uid", "");
	p->created_ms = time_of(metadata, "creationTimestamp");
	p->deleted_ms = time_of(metadata, "deletionTimestamp");
	if (v->kind == OBJECT_POOL)
		return 0;
	if (num_parse_i64(generation, strlen(generation), 0, INT64_MAX, &p->generation, NULL) < 0)
		p->generation = 0;
	p->labels = doc_get(metadata, "labels");
	p->annotations = doc_get(metadata, "annotations");
	p->is_fleet = fleet && fleet->kind == DOC_MAP;
	p->target_kind = text_of(p->is_fleet ? fleet : target, "kind", "Deployment");
	p->target_name = p->is_fleet ? FLEET_TARGET_NAME : text_of(target, "name", "");
	p->min = text_of(spec, "minReplicas", "1");
	p->max = text_of(spec, "maxReplicas", "");
	read_gpus(p, doc_get(spec, "gpus"));
	if (v->kind == OBJECT_SCALED_OBJECT)
		return read_scaled_object(v, p, spec, doc_get(root, "status"), e);
	p->paused_spec = is_true(spec, "paused");
	p->dry_run_spec = is_true(spec, "dryRun");
	p->paused_annotation = is_true(p->annotations, POLICY_ANNOTATION_PAUSED);
	p->dry_run_annotation = is_true(p->annotations, POLICY_ANNOTATION_DRY_RUN);
	p->paused_reason = doc_get_text(p->annotations, POLICY_ANNOTATION_REASON, NULL);
	return read_status(v, p, doc_get(root, "status"), e) < 0 ? -1 : read_targets(v, p, e);
}

static int make_room(struct policy_views *v, struct err *e)
{
	if (v->n < v->room)
		return 0;
	if (v->n == (v->kind == OBJECT_POOL ? POOL_VIEWS_MAX : POLICY_VIEWS_MAX))
		return err_set(e, ERR_LIMIT, "more than %zu %s: %s", v->n, object_kind_info(v->kind)->kinds,
		               v->kind == OBJECT_POOL ? "name them, or use -l" : "name a namespace (-n)");
	size_t room = v->room ? 2 * v->room : 64;
	struct policy_view *more = realloc(v->items, room * sizeof *more);
	if (!more)
		return err_set(e, ERR_INTERNAL, "out of memory");
	v->items = more;
	v->room = room;
	return 0;
}

// Another object at this path (a Status, the error of a proxy) would look like a policy without fields. Names are
// used in URLs and on terminals.
static int check_object(const struct object_kind_info *k, const cJSON *object, struct err *e)
{
	const cJSON *metadata = json_get(object, "metadata");
	const char *kind = json_get_str(object, "kind", json_get(object, "kind") ? "" : k->kind);
	if (strcmp(kind, k->kind) == 0 && k8s_name_is_valid(json_get_str(metadata, "name", "")) &&
	    (!k->is_namespaced || k8s_name_is_valid(json_get_str(metadata, "namespace", ""))))
		return 0;
	return err_set(e, ERR_PROTOCOL, "the server replied with an object that is not a %s with a name%s", k->kind,
	               k->is_namespaced ? " and a namespace" : "");
}

int policy_views_add(struct policy_views *v, struct cJSON *object, struct err *e)
{
	if (check_object(object_kind_info(v->kind), object, e) < 0 || make_room(v, e) < 0)
		return -1;
	cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, "metadata"), "managedFields");
	char *text = cJSON_PrintUnformatted(object);
	if (!text)
		return err_set(e, ERR_INTERNAL, "out of memory");
	struct policy_view *p = &v->items[v->n];
	struct doc_node *root;
	*p = (struct policy_view){.json = arena_strdup(&v->arena, text)};
	int rc = p->json ? doc_from_json(&v->arena, text, strlen(text), &root, e)
	                 : err_set(e, ERR_LIMIT, "the objects need more than %zu bytes", v->arena.max_bytes);
	cJSON_free(text);
	if (rc == 0)
		rc = read_object(v, p, root, e);
	v->n += rc == 0;
	return rc;
}

// Reports an object under the name in its metadata, as far as that is readable.
static int add_fault(struct policy_views *v, struct json_span object, const struct err *why, struct err *e)
{
	struct json_span metadata = json_span_get(object, "metadata");
	char namespace_name[NAME_BYTES], name[NAME_BYTES], shown[2 * NAME_BYTES];
	json_span_text(json_span_get(metadata, "namespace"), namespace_name, sizeof namespace_name);
	json_span_text(json_span_get(metadata, "name"), name, sizeof name);
	bool is_namespaced = object_kind_info(v->kind)->is_namespaced;
	snprintf(shown, sizeof shown, "%s%s%s", namespace_name, is_namespaced ? "/" : "", name);
	if ((is_namespaced && !k8s_name_is_valid(namespace_name)) || !k8s_name_is_valid(name))
		snprintf(shown, sizeof shown, "an object without a valid name");
	if (v->n_faults == v->faults_room) {
		size_t room = v->faults_room ? 2 * v->faults_room : 16;
		const char **more = realloc(v->faults, room * sizeof *more);
		if (!more)
			return err_set(e, ERR_INTERNAL, "out of memory");
		v->faults = more;
		v->faults_room = room;
	}
	const char *text = arena_printf(&v->arena, "%s: %s", shown, why->msg);
	if (!text)
		return err_set(e, ERR_LIMIT, "the objects need more than %zu bytes", v->arena.max_bytes);
	v->faults[v->n_faults++] = text;
	return 0;
}

int policy_views_add_item(void *views, struct json_span object, struct err *e)
{
	struct policy_views *v = views;
	struct err why;
	err_clear(&why);
	if (make_room(v, e) < 0)
		return -1;
	cJSON *tree = json_read(object.text, object.len, &why);
	int rc = tree ? policy_views_add(v, tree, &why) : -1;
	cJSON_Delete(tree);
	if (rc == 0)
		return 0;
	if (why.kind == ERR_INTERNAL)
		return err_set(e, why.kind, "%s", why.msg);
	return add_fault(v, object, &why, e);
}

static int compare(const void *a, const void *b)
{
	const struct policy_view *x = a, *y = b;
	int c = strcmp(x->namespace_name, y->namespace_name);
	return c ? c : strcmp(x->name, y->name);
}

void policy_views_sort(struct policy_views *v)
{
	if (v->n)
		qsort(v->items, v->n, sizeof *v->items, compare);
}

const struct policy_view *policy_view_targets(const struct policy_view *p, size_t *ret_n)
{
	*ret_n = p->n_targets ? p->n_targets : 1;
	return p->n_targets ? p->targets : p;
}

const char *policy_view_mode(const struct policy_view *p)
{
	if (p->paused_spec || p->paused_annotation)
		return "Paused";
	return p->dry_run_spec || p->dry_run_annotation ? "DryRun" : "Active";
}
