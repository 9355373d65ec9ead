// SPDX-License-Identifier: Apache-2.0
#include "remedy/agent/node_pods.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "k8s/client/accelerators.h"

void node_pods_path(const char *node, char out[NODE_PODS_PATH_BYTES])
{
	snprintf(out, NODE_PODS_PATH_BYTES, "/api/v1/pods?fieldSelector=spec.nodeName%%3D%s", node);
}

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

int node_pods_eviction(const char *name, const char *uid, struct buf *path, struct buf *body)
{
	const char *slash = strchr(name, '/');
	struct json_writer w;
	if (!slash)
		return -1;
	buf_printf(path, "/api/v1/namespaces/%.*s/pods/%s/eviction", (int)(slash - name), name, slash + 1);
	json_write_init(&w, body, 0);
	json_write_object_begin(&w);
	json_write_member_str(&w, "apiVersion", "policy/v1");
	json_write_member_str(&w, "kind", "Eviction");
	json_write_member_object(&w, "metadata");
	json_write_key(&w, "namespace");
	json_write_strn(&w, name, (size_t)(slash - name));
	json_write_member_str(&w, "name", slash + 1);
	json_write_object_end(&w);
	json_write_member_object(&w, "deleteOptions");
	json_write_member_object(&w, "preconditions");
	json_write_member_str(&w, "uid", uid);
	json_write_object_end(&w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	return path->failed || body->failed ? -1 : 0;
}

int node_pods_deadline(const char *name, const char *uid, const char *deadline, struct buf *path, struct buf *body)
{
	const char *slash = strchr(name, '/');
	struct json_writer w;
	if (!slash)
		return -1;
	buf_printf(path, "/api/v1/namespaces/%.*s/pods/%s/status", (int)(slash - name), name, slash + 1);
	json_write_init(&w, body, 0);
	json_write_object_begin(&w);
	json_write_member_object(&w, "metadata");
	json_write_member_str(&w, "uid", uid);
	json_write_member_object(&w, "annotations");
	json_write_member_str(&w, POD_DEADLINE, deadline);
	json_write_object_end(&w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	return path->failed || body->failed ? -1 : 0;
}
