// SPDX-License-Identifier: Apache-2.0
#include "cli/policy_view.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc.h"
#include "base/err.h"
#include "base/json_read.h"
#include "base/num.h"
#include "base/schema.h"
#include "k8s/scale.h"
#include "policies/policy_schema.h"

void policy_views_init(struct policy_views *v)
{
	*v = (struct policy_views){0};
	arena_init(&v->arena, POLICY_VIEWS_ARENA_BYTES_MAX);
}

void policy_views_done(struct policy_views *v)
{
	free(v->items);
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
	if (errors->n > 0) { // rather no number than a wrong one
		p->status.current_set = p->status.desired_set = p->status.ready_set = false;
		p->status_fault = arena_printf(&v->arena, "%s: %s", errors->items[0].path, errors->items[0].message);
	}
	free(errors);
	return 0;
}

// As it is written: the default where there is nothing, and no default where there is something that is no text.
static const char *text_of(const struct doc_node *map, const char *key, const char *fallback)
{
	const struct doc_node *node = doc_get(map, key);
	if (!node || node->kind == DOC_NULL)
		return fallback;
	return node->kind == DOC_SCALAR ? node->text : "<invalid>";
}

static int read_object(struct policy_views *v, struct policy_view *p, const struct doc_node *root, struct err *e)
{
	const struct doc_node *metadata = doc_get(root, "metadata"), *spec = doc_get(root, "spec");
	const struct doc_node *target = doc_get(spec, "scaleTargetRef");
	const char *generation = doc_get_text(metadata, "generation", "0");
	p->namespace_name = doc_get_text(metadata, "namespace", "");
	p->name = doc_get_text(metadata, "name", "");
	p->uid = doc_get_text(metadata, "uid", "");
	p->created_ms = time_of(metadata, "creationTimestamp");
	p->deleted_ms = time_of(metadata, "deletionTimestamp");
	if (num_parse_i64(generation, strlen(generation), 0, INT64_MAX, &p->generation, NULL) < 0)
		p->generation = 0;
	p->labels = doc_get(metadata, "labels");
	p->annotations = doc_get(metadata, "annotations");
	p->target_kind = text_of(target, "kind", "Deployment");
	p->target_name = text_of(target, "name", "");
	p->min = text_of(spec, "minReplicas", "1");
	p->max = text_of(spec, "maxReplicas", "");
	p->paused_spec = is_true(spec, "paused");
	p->dry_run_spec = is_true(spec, "dryRun");
	p->paused_annotation = is_true(p->annotations, POLICY_ANNOTATION_PAUSED);
	p->dry_run_annotation = is_true(p->annotations, POLICY_ANNOTATION_DRY_RUN);
	p->paused_reason = doc_get_text(p->annotations, POLICY_ANNOTATION_REASON, NULL);
	return read_status(v, p, doc_get(root, "status"), e);
}

static int make_room(struct policy_views *v, struct err *e)
{
	if (v->n < v->room)
		return 0;
	if (v->n == POLICY_VIEWS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d GPUAutoscalers: name a namespace (-n)", POLICY_VIEWS_MAX);
	size_t room = v->room ? 2 * v->room : 64;
	struct policy_view *more = realloc(v->items, room * sizeof *more);
	if (!more)
		return err_set(e, ERR_INTERNAL, "out of memory");
	v->items = more;
	v->room = room;
	return 0;
}

// Something else under the address of a policy (a Status, what a proxy says of itself) would be shown as one that has
// nothing set. Names go into addresses and onto terminals.
static int check_object(const cJSON *object, struct err *e)
{
	const cJSON *metadata = json_get(object, "metadata");
	const char *kind = json_get_str(object, "kind", json_get(object, "kind") ? "" : POLICY_KIND);
	if (strcmp(kind, POLICY_KIND) == 0 && scale_name_is_valid(json_get_str(metadata, "namespace", "")) &&
	    scale_name_is_valid(json_get_str(metadata, "name", "")))
		return 0;
	return err_set(e, ERR_PROTOCOL,
	               "the server answered with something that is no " POLICY_KIND " with a name and a namespace");
}

int policy_views_add(struct policy_views *v, struct cJSON *object, struct err *e)
{
	if (check_object(object, e) < 0 || make_room(v, e) < 0)
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

int policy_views_add_list(struct policy_views *v, const char *json, size_t len,
                          char ret_continue[static POLICY_VIEWS_CONTINUE_BYTES], struct err *e)
{
	ret_continue[0] = '\0';
	cJSON *root = json_read(json, len, e);
	if (!root)
		return err_wrap(e, "the list of GPUAutoscalers");
	const cJSON *metadata = json_get(root, "metadata"), *items = json_get(root, "items");
	int rc = 0;
	if (!cJSON_IsArray(items))
		rc = err_set(e, ERR_PROTOCOL, "the list of GPUAutoscalers has no items");
	else if (!json_may_be(metadata, cJSON_IsObject))
		rc = err_set(e, ERR_PROTOCOL, "the list's metadata is no object");
	else if (json_get_text(metadata, "continue", ret_continue, POLICY_VIEWS_CONTINUE_BYTES, e) < 0)
		rc = err_wrap(e, "the list's metadata"); // what can be read is not all there is
	for (cJSON *item = rc == 0 ? items->child : NULL; item && rc == 0; item = item->next)
		rc = policy_views_add(v, item, e);
	cJSON_Delete(root);
	return rc;
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

const char *policy_view_mode(const struct policy_view *p)
{
	if (p->paused_spec || p->paused_annotation)
		return "Paused";
	return p->dry_run_spec || p->dry_run_annotation ? "DryRun" : "Active";
}
