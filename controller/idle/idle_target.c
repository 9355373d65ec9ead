// SPDX-License-Identifier: Apache-2.0
#include "controller/idle/idle_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_span.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "k8s/client/k8s_request.h"
#include "policies/schema/policy_schema.h"

#define PATH_BYTES       512
#define BODY_BYTES       1024
#define MARK_BYTES       16
#define REPLICAS_MAX     1000000
#define APPS             "apps/v1"
#define MERGE_PATCH_TYPE "application/merge-patch+json"

struct idle_target {
	struct k8s_client *client;
	idle_target_fn *done;
	void *arg;
	struct idle_record record; // its names
	bool restores;             // what it reads
	struct idle_object object;
	struct pod_list list;
	const char *const *pods;
	size_t n_pods;
	int32_t replicas, to;
};

static const struct {
	const char *kind, *plural;
} kinds[] = {{"Deployment", "deployments"}, {"StatefulSet", "statefulsets"}};

struct idle_target *idle_target_new(struct k8s_client *client, idle_target_fn *done, void *arg)
{
	struct idle_target *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->client = client;
	t->done = done;
	t->arg = arg;
	pod_list_init(&t->list);
	return t;
}

void idle_target_free(struct idle_target *t)
{
	if (!t)
		return;
	pod_list_done(&t->list);
	free(t);
}

static const char *plural_of(const struct idle_record *r)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(kinds[i].kind, r->kind) == 0)
			return kinds[i].plural;
	return NULL;
}

int idle_target_ref(const struct idle_record *r, struct scale_ref *ret_ref)
{
	*ret_ref = (struct scale_ref){APPS, r->kind, r->namespace_name, r->name, NULL};
	return plural_of(r) ? 0 : -1;
}

static void finish(struct idle_target *t, const struct err *error)
{
	t->done(t->arg, &t->object, error);
}

// Nothing was written.
static void refuse(struct idle_target *t, const char *why, const char *pod)
{
	struct err e;
	t->object.is_refused = true;
	err_set(&e, ERR_CONFLICT, "%s%s", why, pod);
	finish(t, &e);
}

static void send(struct idle_target *t, const char *method, const char *body, k8s_done_fn *done)
{
	char path[PATH_BYTES];
	struct err e;
	snprintf(path, sizeof path, "/apis/" APPS "/namespaces/%s/%s/%s", t->record.namespace_name,
	         plural_of(&t->record), t->record.name);
	const struct k8s_request_options request = {.method = method,
	                                            .path = path,
	                                            .content_type = body ? MERGE_PATCH_TYPE : NULL,
	                                            .body = body,
	                                            .body_len = body ? strlen(body) : 0,
	                                            .is_background = true,
	                                            .done = done,
	                                            .arg = t};
	if (k8s_request_with(t->client, &request, NULL, &e) < 0)
		finish(t, &e);
}

static void scale_to(struct idle_target *t, const char *version, int32_t replicas, scale_done_fn *done)
{
	struct scale_ref ref;
	struct err e;
	idle_target_ref(&t->record, &ref);
	if (scale_patch(t->client, &ref, version, replicas, done, t, &e) < 0)
		finish(t, &e);
}

// Sets IDLE_ANNOTATION_REPLICAS, or with replicas < 0 removes both annotations. version NULL: whatever the version.
static void annotate(struct idle_target *t, const char *version, int32_t replicas, k8s_done_fn *done)
{
	struct buf body;
	struct json_writer w;
	char text[16];
	buf_init(&body, BODY_BYTES);
	json_write_init(&w, &body, 0);
	json_write_object_begin(&w);
	json_write_key(&w, "metadata");
	json_write_object_begin(&w);
	if (version)
		json_write_member_str(&w, "resourceVersion", version);
	json_write_key(&w, "annotations");
	json_write_object_begin(&w);
	snprintf(text, sizeof text, "%d", replicas);
	json_write_member_str(&w, IDLE_ANNOTATION_REPLICAS, replicas < 0 ? NULL : text);
	if (replicas < 0)
		json_write_member_null(&w, IDLE_ANNOTATION);
	json_write_object_end(&w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	send(t, "PATCH", buf_str(&body), done);
	buf_done(&body);
}

// ---- the object ----

static void decode(struct idle_target *t, const struct http_response *response, char *version, size_t size)
{
	const struct json_span root = {response->body, response->body_len}, metadata = json_span_get(root, "metadata");
	const struct json_span annotations = json_span_get(metadata, "annotations");
	struct idle_facts *f = &t->object.facts;
	char mark[MARK_BYTES], former[MARK_BYTES];
	int64_t number = 1; // spec.replicas defaults to 1
	struct err ignored;
	*f = (struct idle_facts){.exists = true, .former = -1};
	json_span_text(json_span_get(metadata, "uid"), t->object.uid, sizeof t->object.uid);
	json_span_text(json_span_get(metadata, "resourceVersion"), version, size);
	json_span_i64(json_span_get(json_span_get(root, "spec"), "replicas"), 0, REPLICAS_MAX, &number);
	f->replicas = (int32_t)number;
	if (json_span_text(json_span_get(annotations, IDLE_ANNOTATION), mark, sizeof mark) >= 0) {
		f->is_exempt = strcmp(mark, "exempt") == 0;
		f->wants_restore = strcmp(mark, "restore") == 0;
	}
	if (json_span_text(json_span_get(annotations, IDLE_ANNOTATION_REPLICAS), former, sizeof former) >= 0 &&
	    num_parse_i64(former, strlen(former), 0, REPLICAS_MAX, &number, &ignored) == 0)
		f->former = (int32_t)number;
}

// ---- scaling down ----

static void on_scaled(void *arg, const struct scale *scale, const struct err *error)
{
	struct idle_target *t = arg;
	finish(t, error);
}

static void on_annotated(void *arg, const struct http_response *response, const struct err *error)
{
	struct idle_target *t = arg;
	char version[SCALE_RESOURCE_VERSION_BYTES_MAX] = "";
	if (!response) {
		finish(t, error);
		return;
	}
	decode(t, response, version, sizeof version);
	scale_to(t, version, t->to, on_scaled);
}

static void on_current(void *arg, const struct http_response *response, const struct err *error)
{
	struct idle_target *t = arg;
	char version[SCALE_RESOURCE_VERSION_BYTES_MAX] = "";
	if (!response) {
		finish(t, error);
		return;
	}
	decode(t, response, version, sizeof version);
	if (t->object.facts.replicas != t->replicas || t->object.facts.is_exempt || !version[0]) {
		refuse(t, "the workload was changed meanwhile", "");
		return;
	}
	annotate(t, version, t->replicas, on_annotated);
}

static bool is_among(const struct idle_target *t, const char *pod)
{
	for (size_t i = 0; i < t->n_pods; i++)
		if (strcmp(t->pods[i], pod) == 0)
			return true;
	return false;
}

static void on_pods(void *arg, const struct pod_counts *counts, const struct err *error)
{
	struct idle_target *t = arg;
	size_t running = 0;
	if (!counts) {
		finish(t, error);
		return;
	}
	for (size_t i = 0; i < t->list.n; i++) {
		const struct pod_info *p = &t->list.items[i];
		if (p->kind == POD_KIND_ENDED || p->kind == POD_KIND_DELETED)
			continue;
		running++;
		if (!p->has_gpus) {
			refuse(t, "a pod requests no GPU: ", p->name);
			return;
		}
		if (!is_among(t, p->name)) {
			refuse(t, "not every pod holds idle GPUs: ", p->name);
			return;
		}
	}
	if (running == 0) {
		refuse(t, "the workload has no running pod", "");
		return;
	}
	send(t, "GET", NULL, on_current);
}

static void on_scale(void *arg, const struct scale *scale, const struct err *error)
{
	struct idle_target *t = arg;
	struct err e;
	if (!scale) {
		finish(t, error);
		return;
	}
	pod_list_done(&t->list);
	pod_list_init(&t->list);
	if (pods_list(t->client, t->record.namespace_name, scale->selector, &t->list, on_pods, t, &e) < 0)
		finish(t, &e);
}

// ---- restoring ----

static void on_cleared(void *arg, const struct http_response *response, const struct err *error)
{
	finish(arg, error);
}

static void on_restored(void *arg, const struct scale *scale, const struct err *error)
{
	struct idle_target *t = arg;
	if (scale)
		annotate(t, NULL, -1, on_cleared); // last: until then it is tried again
	else
		finish(t, error);
}

static void on_read(void *arg, const struct http_response *response, const struct err *error)
{
	struct idle_target *t = arg;
	char version[SCALE_RESOURCE_VERSION_BYTES_MAX] = "";
	if (!response) {
		finish(t, error->kind == ERR_NOT_FOUND ? NULL : error);
		return;
	}
	decode(t, response, version, sizeof version);
	if (t->restores)
		scale_to(t, version, t->to, on_restored);
	else
		finish(t, NULL);
}

// ---- operations ----

static void start(struct idle_target *t, const struct idle_record *record, bool restores)
{
	t->record = *record;
	t->restores = restores;
	t->object = (struct idle_object){.facts = {.former = -1}};
}

void idle_target_read(struct idle_target *t, const struct idle_record *record)
{
	start(t, record, false);
	send(t, "GET", NULL, on_read);
}

void idle_target_scale(struct idle_target *t, const struct idle_record *record, const char *const *pods, size_t n_pods,
                       int32_t replicas, int32_t to)
{
	struct scale_ref ref;
	struct err e;
	start(t, record, false);
	t->pods = pods;
	t->n_pods = n_pods;
	t->replicas = replicas;
	t->to = to;
	idle_target_ref(&t->record, &ref);
	if (scale_get(t->client, &ref, on_scale, t, &e) < 0)
		finish(t, &e);
}

void idle_target_restore(struct idle_target *t, const struct idle_record *record, int32_t replicas)
{
	start(t, record, true);
	t->to = replicas;
	send(t, "GET", NULL, on_read);
}
