// SPDX-License-Identifier: Apache-2.0
#include "controller/remedy/node_view.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "k8s/capacity/resource_names.h"
#include "remedy/remedy_record.h"

static bool condition_is_true(const cJSON *status, const char *type)
{
	const cJSON *list = json_get(status, "conditions");
	for (const cJSON *c = cJSON_IsArray(list) ? list->child : NULL; c; c = c->next)
		if (strcmp(json_get_str(c, "type", ""), type) == 0)
			return strcmp(json_get_str(c, "status", ""), "True") == 0;
	return false;
}

static bool has_accelerator(const cJSON *status)
{
	const cJSON *map = json_get(status, "capacity");
	for (const cJSON *c = cJSON_IsObject(map) ? map->child : NULL; c; c = c->next)
		if (cJSON_IsString(c) && strcmp(c->valuestring, "0") != 0 && resource_is_accelerator(c->string))
			return true;
	return false;
}

// Prints the taints of others, which a patch has to repeat because it replaces the list.
static int read_taints(const cJSON *spec, struct node_view *v, struct err *e)
{
	const cJSON *list = json_get(spec, "taints");
	struct buf others;
	buf_init(&others, NODE_TAINTS_MAX);
	for (const cJSON *c = cJSON_IsArray(list) ? list->child : NULL; c; c = c->next) {
		if (strcmp(json_get_str(c, "key", ""), NODE_TAINT) == 0) {
			v->is_tainted = true;
			continue;
		}
		char *text = cJSON_PrintUnformatted(c);
		buf_printf(&others, "%s%s", others.len ? "," : "", text ? text : "");
		others.failed |= !text;
		cJSON_free(text);
	}
	int rc = others.failed
	                 ? err_set(e, ERR_LIMIT, "the taints of the node have more than %d bytes", NODE_TAINTS_MAX)
	                 : 0;
	v->other_taints = rc == 0 ? strdup(buf_str(&others)) : NULL;
	buf_done(&others);
	return rc == 0 && !v->other_taints ? err_set(e, ERR_INTERNAL, "out of memory") : rc;
}

static int read_record(const cJSON *metadata, struct node_view *v, struct err *e)
{
	const char *text = json_get_str(json_get(metadata, "annotations"), NODE_ANNOTATION, NULL);
	if (!text)
		return 0;
	// One byte more than a record may have, so that a longer text stays invalid.
	v->record = strndup(text, REMEDY_RECORD_BYTES_MAX + 1);
	return v->record ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

static int read_node(const cJSON *root, struct node_view *v, struct err *e)
{
	const cJSON *metadata = json_get(root, "metadata"), *spec = json_get(root, "spec");
	const cJSON *status = json_get(root, "status");
	if (json_get_text(metadata, "uid", v->uid, sizeof v->uid, e) < 0 ||
	    json_get_text(metadata, "resourceVersion", v->version, sizeof v->version, e) < 0)
		return -1;
	if (!v->version[0])
		return err_set(e, ERR_PROTOCOL, "the node has no metadata.resourceVersion");
	v->is_ready = condition_is_true(status, "Ready");
	v->is_cordoned = cJSON_IsTrue(json_get(spec, "unschedulable"));
	v->has_gpus = has_accelerator(status);
	return read_taints(spec, v, e) < 0 || read_record(metadata, v, e) < 0 ? -1 : 0;
}

int node_view_read(const char *json, size_t len, struct node_view *ret_view, struct err *e)
{
	memset(ret_view, 0, sizeof *ret_view);
	cJSON *root = json_read(json, len, e);
	int rc = root ? read_node(root, ret_view, e) : -1;
	cJSON_Delete(root);
	if (rc < 0)
		node_view_done(ret_view);
	return rc;
}

void node_view_done(struct node_view *v)
{
	free(v->other_taints);
	free(v->record);
	memset(v, 0, sizeof *v);
}

void node_view_patch(const struct node_view *v, const char *record, bool is_tainted, const char *fault, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_object_begin(&w);
	json_write_key(&w, "metadata");
	json_write_object_begin(&w);
	json_write_member_str(&w, "resourceVersion", v->version);
	json_write_key(&w, "annotations");
	json_write_object_begin(&w);
	json_write_member_str(&w, NODE_ANNOTATION, record);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (is_tainted != v->is_tainted) {
		json_write_key(&w, "spec");
		json_write_object_begin(&w);
		json_write_key(&w, "taints");
		json_write_array_begin(&w);
		if (v->other_taints[0])
			json_write_raw(&w, v->other_taints);
		if (is_tainted) {
			json_write_object_begin(&w);
			json_write_member_str(&w, "key", NODE_TAINT);
			json_write_member_str(&w, "value", fault);
			json_write_member_str(&w, "effect", "NoSchedule");
			json_write_object_end(&w);
		}
		json_write_array_end(&w);
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
}
