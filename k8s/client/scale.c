// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/scale.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "base/json/json_write.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/object_name.h"

#define PATCH_BYTES_MAX 512

struct operation {
	struct k8s_client *client;
	char *api_version, *kind, *namespace_name, *name; // in the same allocation
	bool is_patch;
	char resource_version[SCALE_RESOURCE_VERSION_BYTES_MAX];
	int32_t replicas;
	scale_done_fn *done;
	void *arg;
};

static void finish(struct operation *op, const struct scale *scale, const struct err *error)
{
	scale_done_fn *done = op->done;
	void *arg = op->arg;
	free(op);
	done(arg, scale, error);
}

static void on_reply(void *arg, const struct http_response *response, const struct err *error)
{
	struct operation *op = arg;
	struct scale scale;
	struct err e;
	if (error)
		finish(op, NULL, error);
	else if (scale_decode(response->body, response->body_len, &scale, &e) < 0)
		finish(op, NULL, &e);
	else
		finish(op, &scale, NULL);
}

static int send_request(struct operation *op, const struct k8s_resource *resource, struct err *e)
{
	struct buf path, body;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_init(&body, PATCH_BYTES_MAX);
	buf_printf(&path, "%s/%s", strchr(op->api_version, '/') ? "/apis" : "/api", op->api_version);
	if (resource->is_namespaced)
		buf_printf(&path, "/namespaces/%s", op->namespace_name);
	buf_printf(&path, "/%s/%s/scale", resource->plural, op->name);
	if (op->is_patch) {
		struct json_writer w;
		json_write_init(&w, &body, 0);
		json_write_object_begin(&w);
		json_write_member_object(&w, "metadata");
		json_write_member_str(&w, "resourceVersion", op->resource_version);
		json_write_object_end(&w);
		json_write_member_object(&w, "spec");
		json_write_member_i64(&w, "replicas", op->replicas);
		json_write_object_end(&w);
		json_write_object_end(&w);
	}
	int rc = -1;
	if (path.failed || body.failed)
		err_set(e, ERR_LIMIT, "the path or body of a scale request is too long");
	else
		rc = k8s_request(op->client, op->is_patch ? "PATCH" : "GET", buf_str(&path),
		                 op->is_patch ? "application/merge-patch+json" : NULL, body.data, body.len, on_reply,
		                 op, e);
	buf_done(&path);
	buf_done(&body);
	return rc;
}

static void on_resource(void *arg, const struct k8s_resource *resource, const struct err *error)
{
	struct operation *op = arg;
	struct err e = {0};
	if (error)
		finish(op, NULL, error);
	else if (send_request(op, resource, &e) < 0)
		finish(op, NULL, &e);
}

static char *put(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	char *p = memcpy(*at, text, size);
	*at += size;
	return p;
}

static struct operation *operation_new(struct k8s_client *c, const struct scale_ref *ref, scale_done_fn *done,
                                       void *arg, struct err *e)
{
	if (!k8s_name_is_valid(ref->namespace_name) || !k8s_name_is_valid(ref->name)) {
		err_set(e, ERR_INPUT, "invalid namespace and name of an object: \"%.80s/%.80s\"", ref->namespace_name,
		        ref->name);
		return NULL;
	}
	struct operation *op = calloc(1, sizeof *op + strlen(ref->api_version) + strlen(ref->kind) +
	                                         strlen(ref->namespace_name) + strlen(ref->name) + 4);
	if (!op) {
		err_no_memory(e);
		return NULL;
	}
	char *at = (char *)(op + 1);
	op->api_version = put(&at, ref->api_version);
	op->kind = put(&at, ref->kind);
	op->namespace_name = put(&at, ref->namespace_name);
	op->name = put(&at, ref->name);
	op->client = c;
	op->done = done;
	op->arg = arg;
	return op;
}

static int start(struct operation *op, struct err *e)
{
	struct discovery *d = k8s_client_discovery(op->client);
	const struct k8s_resource *resource = discovery_find(d, op->api_version, op->kind);
	int rc = resource ? send_request(op, resource, e)
	                  : discovery_fetch(d, op->api_version, op->kind, op->namespace_name, on_resource, op, e);
	if (rc < 0)
		free(op);
	return rc;
}

int scale_get(struct k8s_client *c, const struct scale_ref *ref, scale_done_fn *done, void *arg, struct err *e)
{
	struct operation *op = operation_new(c, ref, done, arg, e);
	return op ? start(op, e) : -1;
}

int scale_patch(struct k8s_client *c, const struct scale_ref *ref, const char *resource_version, int32_t replicas,
                scale_done_fn *done, void *arg, struct err *e)
{
	size_t len = strlen(resource_version);
	if (len == 0 || len >= SCALE_RESOURCE_VERSION_BYTES_MAX || replicas < 0)
		return err_set(e, ERR_INPUT,
		               "a scale is set with the resourceVersion that was read, to 0 or more replicas");
	struct operation *op = operation_new(c, ref, done, arg, e);
	if (!op)
		return -1;
	op->is_patch = true;
	op->replicas = replicas;
	memcpy(op->resource_version, resource_version, len + 1);
	return start(op, e);
}
