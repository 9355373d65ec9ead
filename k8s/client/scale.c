// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/scale.h"

#include "base/base.h"
#include "base/http/http_client.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"

#define PATCH_BYTES_MAX 2048

struct operation {
	struct scale_ref ref; // first; see scale_ref_copy()
	struct k8s_client *client;
	bool is_patch; // still to be sent
	struct k8s_resource resource;
	char resource_version[SCALE_RESOURCE_VERSION_BYTES_MAX];
	int32_t replicas;
	scale_done_fn *done;
	k8s_done_fn *done_object; // in place of `done`; NULL: the scale is read
	void *arg;
};

// An absent count is 0: the API leaves zeros out.
static int read_count(const cJSON *o, const char *key, int32_t *ret_value, struct err *e)
{
	int64_t value = 0;
	if (cJSON_IsNull(json_get(o, key)))
		return err_set(e, ERR_PROTOCOL, "%s is null", key);
	if (json_get_i64(o, key, 0, INT32_MAX, &value, e) < 0)
		return -1;
	*ret_value = (int32_t)value;
	return 0;
}

static int decode_scale(const cJSON *root, struct scale *s, struct err *e)
{
	if (strcmp(json_get_str(root, "kind", ""), "Scale") != 0)
		return err_set(e, ERR_PROTOCOL, "expected a Scale, got kind \"%.60s\"", json_get_str(root, "kind", ""));
	const cJSON *spec = json_get(root, "spec"), *status = json_get(root, "status");
	if (!cJSON_IsObject(spec)) // the spec of a scale of 0 is empty
		return err_set(e, ERR_PROTOCOL, "spec is missing, or not a map");
	if (!json_may_be(status, cJSON_IsObject))
		return err_set(e, ERR_PROTOCOL, "status is not a map");
	if (read_count(spec, "replicas", &s->spec_replicas, e) < 0)
		return err_wrap(e, "spec");
	if (read_count(status, "replicas", &s->status_replicas, e) < 0 ||
	    json_get_text(status, "selector", s->selector, sizeof s->selector, e) < 0)
		return err_wrap(e, "status");
	if (json_get_text(json_get(root, "metadata"), "resourceVersion", s->resource_version,
	                  sizeof s->resource_version, e) < 0)
		return err_wrap(e, "metadata");
	if (!s->resource_version[0])
		return err_set(e, ERR_PROTOCOL, "metadata.resourceVersion is missing");
	if (strpbrk(s->resource_version, "\"\\"))
		return err_set(e, ERR_PROTOCOL, "metadata.resourceVersion contains quotes");
	return 0;
}

int scale_decode(const char *text, size_t len, struct scale *ret_scale, struct err *e)
{
	*ret_scale = (struct scale){0};
	cJSON *root = json_read(text, len, e);
	int rc = root ? decode_scale(root, ret_scale, e) : -1;
	cJSON_Delete(root);
	return rc < 0 ? err_wrap(e, "reply to a scale request") : 0;
}

static void finish(struct operation *op, const struct scale *scale, const struct err *error)
{
	if (op->done_object)
		op->done_object(op->arg, NULL, error);
	else
		op->done(op->arg, scale, error);
	free(op);
}

static int send_request(struct operation *op, struct json_span object, struct err *e);

// A path leads to a place in a list that the object itself shows, so it is read before it is written.
static void on_reply(void *arg, const struct http_response *response, const struct err *error)
{
	struct operation *op = arg;
	struct scale scale;
	struct err e;
	int rc = -1;
	if (error) {
		finish(op, NULL, error);
		return;
	}
	if (op->done_object) {
		op->done_object(op->arg, response, NULL);
		free(op);
		return;
	}
	struct json_span object = {response->body, response->body_len};
	if (op->ref.path && op->is_patch) {
		if (send_request(op, object, &e) < 0)
			finish(op, NULL, &e);
		return;
	}
	if (!op->ref.path)
		rc = scale_decode(response->body, response->body_len, &scale, &e);
	else if (!json_span_is_whole(object))
		err_set(&e, ERR_PROTOCOL, "the reply is not JSON");
	else
		rc = scale_path_read(&op->ref, object, &scale, &e);
	finish(op, rc < 0 ? NULL : &scale, rc < 0 ? &e : NULL);
}

static void write_patch(const struct operation *op, struct buf *body)
{
	struct json_writer w;
	json_write_init(&w, body, 0);
	json_write_format(&w, "{metadata:{resourceVersion:%s},spec:{replicas:%d}}", op->resource_version, op->replicas);
}

// object: of which the patch of a path is made; absent: it is to be read first.
static int send_request(struct operation *op, struct json_span object, struct err *e)
{
	const struct scale_ref *ref = &op->ref;
	struct buf path, body;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_init(&body, PATCH_BYTES_MAX);
	buf_printf(&path, "%s/%s", strchr(ref->api_version, '/') ? "/apis" : "/api", ref->api_version);
	if (op->resource.is_namespaced)
		buf_printf(&path, "/namespaces/%s", ref->namespace_name);
	buf_printf(&path, "/%s/%s%s", op->resource.plural, ref->name, ref->path || op->done_object ? "" : "/scale");
	bool writes = op->is_patch && (!ref->path || object.text);
	int rc = 0;
	if (writes && ref->path)
		rc = scale_path_write_patch(ref, object, op->resource_version, op->replicas, &body, e);
	else if (writes)
		write_patch(op, &body);
	if (rc == 0 && (path.failed || body.failed))
		rc = err_set(e, ERR_LIMIT, "the path or body of a scale request is too long");
	if (writes && ref->path)
		op->is_patch = false; // its reply is the object
	const char *type = ref->path ? "application/json-patch+json" : "application/merge-patch+json";
	if (rc == 0)
		rc = k8s_request(op->client, writes ? "PATCH" : "GET", buf_str(&path), writes ? type : NULL, body.data,
		                 body.len, on_reply, op, e);
	buf_done(&path);
	buf_done(&body);
	return rc;
}

static void on_resource(void *arg, const struct k8s_resource *resource, const struct err *error)
{
	struct operation *op = arg;
	struct err e = {0};
	if (error) {
		finish(op, NULL, error);
		return;
	}
	op->resource = *resource;
	if (send_request(op, (struct json_span){NULL, 0}, &e) < 0)
		finish(op, NULL, &e);
}

void *scale_ref_copy(const struct scale_ref *ref, size_t size)
{
	struct scale_ref r = *ref;
	const char **const texts[] = {&r.api_version, &r.kind, &r.namespace_name, &r.name, &r.path};
	struct scale_ref *copy = alloc_with_texts(size, texts, sizeof texts / sizeof texts[0], NULL);
	if (copy)
		*copy = r;
	return copy;
}

// resource_version: of the object that is patched; NULL: it is only read.
static int start(struct k8s_client *c, const struct scale_ref *ref, const char *resource_version, int32_t replicas,
                 scale_done_fn *done, k8s_done_fn *done_object, void *arg, struct err *e)
{
	if (!k8s_name_is_valid(ref->namespace_name) || !k8s_name_is_valid(ref->name))
		return err_set(e, ERR_INPUT, "invalid namespace and name of an object: \"%.80s/%.80s\"",
		               ref->namespace_name, ref->name);
	struct operation *op = scale_ref_copy(ref, sizeof *op);
	if (!op)
		return err_no_memory(e);
	op->client = c;
	op->is_patch = resource_version != NULL;
	op->replicas = replicas;
	snprintf(op->resource_version, sizeof op->resource_version, "%s", resource_version ? resource_version : "");
	op->done = done;
	op->done_object = done_object;
	op->arg = arg;
	const struct k8s_resource *resource = discovery_find(c->discovery, ref->api_version, ref->kind, !ref->path);
	int rc;
	if (resource) {
		op->resource = *resource;
		rc = send_request(op, (struct json_span){NULL, 0}, e);
	} else {
		rc = discovery_fetch(c->discovery, ref->api_version, ref->kind, !ref->path, ref->namespace_name,
		                     on_resource, op, e);
	}
	if (rc < 0)
		free(op);
	return rc;
}

int scale_get(struct k8s_client *c, const struct scale_ref *ref, scale_done_fn *done, void *arg, struct err *e)
{
	return start(c, ref, NULL, 0, done, NULL, arg, e);
}

int scale_get_object(struct k8s_client *c, const struct scale_ref *ref, k8s_done_fn *done, void *arg, struct err *e)
{
	return start(c, ref, NULL, 0, NULL, done, arg, e);
}

int scale_patch(struct k8s_client *c, const struct scale_ref *ref, const char *resource_version, int32_t replicas,
                scale_done_fn *done, void *arg, struct err *e)
{
	size_t len = strlen(resource_version);
	if (len == 0 || len >= SCALE_RESOURCE_VERSION_BYTES_MAX || replicas < 0)
		return err_set(e, ERR_INPUT,
		               "a scale is set with the resourceVersion that was read, to 0 or more replicas");
	return start(c, ref, resource_version, replicas, done, NULL, arg, e);
}
