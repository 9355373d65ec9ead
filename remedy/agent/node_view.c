// SPDX-License-Identifier: Apache-2.0
#include "remedy/agent/node_view.h"

#include <cjson/cJSON.h>
#include <inttypes.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "k8s/client/accelerators.h"
#include "remedy/remedy_record.h"

static bool condition_is_true(const cJSON *status, const char *type)
{
	const cJSON *list = json_get(status, "conditions");
	for (const cJSON *c = cJSON_IsArray(list) ? list->child : NULL; c; c = c->next)
		if (strcmp(json_get_str(c, "type", ""), type) == 0)
			return strcmp(json_get_str(c, "status", ""), "True") == 0;
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
	v->other_taints = must_alloc(strdup(buf_str(&others)));
	buf_done(&others);
	return rc;
}

// "UUID TIME done" or "UUID TIME failed", with any text behind it.
static void read_reset_result(const cJSON *notes, struct node_view *v)
{
	const char *text = json_get_str(notes, NODE_RESET_RESULT, ""), *time = strchr(text, ' ');
	const char *result = time ? strchr(time + 1, ' ') : NULL;
	struct err e;
	if (!result || (size_t)(time - text) >= sizeof v->reset_result.gpu ||
	    num_parse_i64(time + 1, (size_t)(result - time - 1), 0, INT64_MAX, &v->reset_result.time_ms, &e) < 0)
		return;
	v->reset_result.is_done = strcmp(result, " done") == 0 || strncmp(result, " done ", 6) == 0;
	if (v->reset_result.is_done || strncmp(result, " failed", 7) == 0)
		memcpy(v->reset_result.gpu, text, (size_t)(time - text));
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
	const cJSON *notes = json_get(metadata, "annotations");
	v->is_unschedulable = cJSON_IsTrue(json_get(spec, "unschedulable"));
	v->has_cordon_mark = json_get(notes, NODE_CORDON) != NULL;
	v->has_reset = json_get(notes, NODE_RESET) != NULL;
	read_reset_result(notes, v);
	if (read_taints(spec, v, e) < 0)
		return -1;
	const char *record = json_get_str(notes, NODE_ANNOTATION, NULL);
	// One byte more than a record may have, so that a longer text stays invalid.
	v->record = record ? must_alloc(strndup(record, REMEDY_RECORD_BYTES_MAX + 1)) : NULL;
	v->has_gpus = accelerators_in(json_get(status, "capacity"), v->record || node_view_is_out(v));
	return 0;
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

bool node_view_is_out(const struct node_view *v)
{
	return v->is_tainted || (v->is_unschedulable && v->has_cordon_mark);
}

bool node_view_is_cordoned(const struct node_view *v)
{
	return v->is_unschedulable && !v->has_cordon_mark;
}

static void write_annotations(const struct node_view *v, const struct node_view_change *c, bool is_cordoned,
                              struct json_writer *w)
{
	char reset[REMEDY_UUID_BYTES + 32];
	json_write_format(w, "annotations:{" NODE_ANNOTATION ":%s", c->record);
	if (is_cordoned)
		json_write_member_str(w, NODE_CORDON, c->fault);
	else if (v->has_cordon_mark && !(c->is_out && v->is_unschedulable))
		json_write_member_null(w, NODE_CORDON);
	snprintf(reset, sizeof reset, "%s %" PRId64, c->reset_gpu ? c->reset_gpu : "", c->reset_ms);
	if (c->reset_gpu)
		json_write_member_str(w, NODE_RESET, reset);
	else if (v->has_reset)
		json_write_member_null(w, NODE_RESET);
	json_write_object_end(w);
}

static void write_taints(const struct node_view *v, const char *fault, struct json_writer *w)
{
	json_write_member_array(w, "taints");
	if (v->other_taints[0])
		json_write_raw(w, v->other_taints);
	if (fault)
		json_write_format(w, "{key:%s,value:%s,effect:%s}", NODE_TAINT, fault, "NoSchedule");
	json_write_array_end(w);
}

void node_view_patch(const struct node_view *v, const struct node_view_change *c, struct buf *out)
{
	struct json_writer w;
	bool sets = c->is_out && !node_view_is_out(v);
	bool cordons = sets && c->cordons && !v->is_unschedulable;
	bool uncordons = !c->is_out && v->is_unschedulable && v->has_cordon_mark;
	bool changes_taint = (sets && !cordons) || (!c->is_out && v->is_tainted);
	json_write_init(&w, out, 0);
	json_write_format(&w, "{metadata:{resourceVersion:%s", v->version);
	write_annotations(v, c, cordons, &w);
	json_write_object_end(&w);
	if (cordons || uncordons || changes_taint) {
		json_write_member_object(&w, "spec");
		if (cordons)
			json_write_member_bool(&w, "unschedulable", true);
		else if (uncordons)
			json_write_member_null(&w, "unschedulable");
		if (changes_taint)
			write_taints(v, sets ? c->fault : NULL, &w);
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
}

// ---- the pods of a node ----

static bool is_pinned(const cJSON *metadata)
{
	const cJSON *owners = json_get(metadata, "ownerReferences");
	for (const cJSON *c = cJSON_IsArray(owners) ? owners->child : NULL; c; c = c->next) {
		const char *kind = json_get_str(c, "kind", "");
		if (strcmp(kind, "DaemonSet") == 0 || strcmp(kind, "Node") == 0)
			return true;
	}
	return json_get(metadata, "deletionTimestamp") ||
	       json_get(json_get(metadata, "annotations"), "kubernetes.io/config.mirror");
}

static int read_pod(const cJSON *o, struct arena *a, struct node_pod *p, struct err *e)
{
	const cJSON *metadata = json_get(o, "metadata"), *spec = json_get(o, "spec");
	const char *space = json_get_str(metadata, "namespace", ""), *name = json_get_str(metadata, "name", "");
	const cJSON *notes = json_get(metadata, "annotations");
	const char *wait = json_get_str(notes, POD_ANNOTATION, NULL), *saved = json_get_str(notes, POD_SAVED, "");
	const char *deadline = json_get_str(notes, POD_DEADLINE, NULL);
	struct err bad;
	if (!space[0] || !name[0])
		return err_set(e, ERR_PROTOCOL, "a pod of the list lacks its name");
	*p = (struct node_pod){.name = arena_printf(a, "%s/%s", space, name),
	                       .uid = arena_strdup(a, json_get_str(metadata, "uid", "")),
	                       .uses_gpus = accelerators_of_pod(spec),
	                       .is_pinned = is_pinned(metadata),
	                       .deadline = deadline ? arena_strdup(a, deadline) : NULL};
	if (num_parse_rfc3339_ms(saved, strlen(saved), &p->saved_ms, &bad) < 0)
		p->saved_ms = -1;
	if (!p->name || !p->uid || (deadline && !p->deadline))
		return err_set(e, ERR_LIMIT, "the list of pods does not fit into the memory allowed");
	if (wait &&
	    (num_parse_duration_ms(wait, strlen(wait), &p->wait_ms, &bad) < 0 || p->wait_ms > NODE_PODS_WAIT_MAX_MS))
		p->wait_ms = NODE_PODS_WAIT_MAX_MS;
	return 0;
}

static int read_list(const cJSON *root, struct arena *a, struct node_pod **ret_pods, size_t *ret_n, struct err *e)
{
	const cJSON *items = json_get(root, "items");
	size_t n = 0;
	if (!cJSON_IsArray(items))
		return err_set(e, ERR_PROTOCOL, "the list of pods has no items");
	int all = cJSON_GetArraySize(items);
	if (all > NODE_PODS_MAX)
		return err_set(e, ERR_LIMIT, "the node has %d pods, the ceiling is %d", all, NODE_PODS_MAX);
	struct node_pod *pods = arena_calloc(a, (size_t)all + 1, sizeof *pods);
	if (!pods)
		return err_set(e, ERR_LIMIT, "the list of pods does not fit into the memory allowed");
	for (const cJSON *c = items->child; c; c = c->next) {
		const char *phase = json_get_str(json_get(c, "status"), "phase", "");
		if (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0)
			continue;
		if (read_pod(c, a, &pods[n], e) < 0)
			return -1;
		n++;
	}
	*ret_pods = pods;
	*ret_n = n;
	return 0;
}

int node_pods_read(const char *json, size_t len, struct arena *a, struct node_pod **ret_pods, size_t *ret_n,
                   struct err *e)
{
	cJSON *root = json_read(json, len, e);
	int rc = root ? read_list(root, a, ret_pods, ret_n, e) : -1;
	cJSON_Delete(root);
	return rc;
}

// Writes the path of the pod namespace/name, followed by `suffix`. Returns the slash; NULL: the name has none.
static const char *put_path(const char *name, const char *suffix, struct buf *path)
{
	const char *slash = strchr(name, '/');
	if (slash)
		buf_printf(path, "/api/v1/namespaces/%.*s/pods/%s/%s", (int)(slash - name), name, slash + 1, suffix);
	return slash;
}

int node_pods_eviction(const char *name, const char *uid, struct buf *path, struct buf *body)
{
	const char *slash = put_path(name, "eviction", path);
	struct json_writer w;
	if (!slash)
		return -1;
	json_write_init(&w, body, 0);
	json_write_format(&w, "{apiVersion:%s,kind:%s,metadata:{", "policy/v1", "Eviction");
	json_write_key(&w, "namespace");
	json_write_strn(&w, name, (size_t)(slash - name));
	json_write_format(&w, "name:%s},deleteOptions:{preconditions:{uid:%s}}}", slash + 1, uid);
	return path->failed || body->failed ? -1 : 0;
}

int node_pods_deadline(const char *name, const char *uid, const char *deadline, struct buf *path, struct buf *body)
{
	struct json_writer w;
	if (!put_path(name, "status", path))
		return -1;
	json_write_init(&w, body, 0);
	json_write_format(&w, "{metadata:{uid:%s,annotations:{" POD_DEADLINE ":%s}}}", uid, deadline);
	return path->failed || body->failed ? -1 : 0;
}
