// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/shape_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "k8s/cache/target_decode.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/label_selector.h"
#include "k8s/client/object_name.h"
#include "k8s/client/scale.h"

#define KUEUE_QUEUE_LABEL "kueue.x-k8s.io/queue-name"
// LeaderWorkerSet: the controller adds pod affinity to its pods.
#define EXCLUSIVE_ANNOTATION "leaderworkerset.sigs.k8s.io/exclusive-topology"

struct shape_fetch {
	struct k8s_client *client;
	struct resource_names *names;
	char *api_version, *kind, *namespace_name, *name;
	struct target_shape result;
	size_t claim; // the next one to fetch
	shape_fetch_fn *fn;
	void *arg;
	bool is_abandoned;
};

void target_shape_done(struct target_shape *t)
{
	if (t->has_shape)
		replica_shape_done(&t->shape);
	label_selector_free(t->selector);
	t->has_shape = false;
	t->selector = NULL;
}

static void free_fetch(struct shape_fetch *f)
{
	free(f->api_version);
	free(f->kind);
	free(f->namespace_name);
	free(f->name);
	free(f);
}

static void finish(struct shape_fetch *f)
{
	if (f->is_abandoned)
		target_shape_done(&f->result);
	else
		f->fn(f->arg, &f->result);
	free_fetch(f);
}

static void fail(struct shape_fetch *f, const struct err *error)
{
	f->result.error = *error;
	finish(f);
}

// ---- the claims ----

static void fetch_claim(struct shape_fetch *f);

static void on_claim(void *arg, const struct http_response *response, const struct err *error)
{
	struct shape_fetch *f = arg;
	const struct replica_claim *claim = f->is_abandoned ? NULL : &f->result.shape.claims[f->claim];
	struct err e = {0};
	if (!claim) {
		finish(f);
		return;
	}
	if (!response)
		e = *error;
	if (!response || replica_shape_add_claim(&f->result.shape, f->names,
	                                         (struct json_span){response->body, response->body_len}, &e) < 0) {
		err_wrap(&e, "ResourceClaimTemplate %s", claim->template_name);
		fail(f, &e);
		return;
	}
	f->claim++;
	fetch_claim(f);
}

static int send_claim(struct shape_fetch *f, const struct replica_claim *claim, struct err *e)
{
	char path[K8S_PATH_BYTES_MAX];
	if (claim->claim_name)
		return err_set(e, ERR_UNSUPPORTED,
		               "all replicas share the ResourceClaim %s, so what one more needs is not counted",
		               claim->claim_name);
	if (!k8s_name_is_valid(claim->template_name))
		return err_set(e, ERR_INPUT, "invalid resourceClaimTemplateName %s", claim->template_name);
	snprintf(path, sizeof path, "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaimtemplates/%s",
	         f->namespace_name, claim->template_name);
	return k8s_request(f->client, "GET", path, NULL, NULL, 0, on_claim, f, e);
}

static void fetch_claim(struct shape_fetch *f)
{
	struct err e = {0};
	if (f->claim == f->result.shape.n_claims)
		finish(f);
	else if (send_claim(f, &f->result.shape.claims[f->claim], &e) < 0)
		fail(f, &e);
}

// ---- the target ----

static int read_selector(struct target_shape *t, struct json_span spec, struct err *e)
{
	char text[SCALE_SELECTOR_BYTES_MAX];
	struct json_span selector = json_span_get(spec, "selector");
	if (json_span_kind(selector) != '{')
		return 0; // not a kind of apps/v1: its pods are not recognized
	if (label_selector_render(selector, text, sizeof text, e) < 0)
		return -1;
	t->selector = label_selector_parse(text, e);
	return t->selector ? 0 : -1;
}

// Kueue: the label of a workload, which its webhook copies to the pod template, or of the pod template itself.
static void read_queue(struct target_shape *t, struct json_span object)
{
	static const char *const of_target[] = {"metadata", "labels", KUEUE_QUEUE_LABEL, NULL};
	static const char *const of_template[] = {"spec", "template", "metadata", "labels", KUEUE_QUEUE_LABEL, NULL};
	if (json_span_text(json_span_path(object, of_target), t->queue, sizeof t->queue) <= 0)
		json_span_text(json_span_path(object, of_template), t->queue, sizeof t->queue);
}

int32_t target_shape_gpus(const struct target_shape *t, const struct resource_names *names)
{
	int64_t n = (int64_t)replica_shape_gpus(&t->shape, names) * t->pods;
	return n <= RESOURCE_DEVICES_MAX ? (int32_t)n : 0;
}

// Finds the template of the pods of a replica, all alike, and how many they are. Returns 0, or -1 and *e.
static int find_group(struct shape_fetch *f, struct json_span group, struct json_span *ret_template, struct err *e)
{
	static const char *const path[] = {"workerTemplate", "spec", NULL};
	struct json_span leader = json_span_get(group, "leaderTemplate"), size = json_span_get(group, "size");
	int64_t pods = 1; // the default of an absent field
	if (leader.text && json_span_kind(leader) != 'n')
		return err_set(e, ERR_UNSUPPORTED,
		               "the leaders of a %s have a leaderTemplate, so what a replica needs is not counted",
		               f->kind);
	if (size.text && !json_span_i64(size, 1, WORKLOAD_GROUP_PODS_MAX, &pods))
		return err_set(e, ERR_INPUT, "size: expected a number of pods from 1 to %d", WORKLOAD_GROUP_PODS_MAX);
	f->result.pods = (int32_t)pods;
	*ret_template = json_span_path(group, path);
	return 0;
}

static int read_target(struct shape_fetch *f, struct json_span object, struct err *e)
{
	static const char *const exclusive[] = {"metadata", "annotations", EXCLUSIVE_ANNOTATION, NULL};
	const char *group = workload_kind_find(f->api_version, f->kind)->group_template;
	struct target_shape *t = &f->result;
	struct json_span spec = json_span_get(object, "spec"), template = replica_template(object);
	int64_t replicas = 1; // the default of an absent field
	t->pods = 1;
	if (group && find_group(f, json_span_get(spec, group), &template, e) < 0)
		return err_wrap(e, "%s/%s", f->kind, f->name);
	if (!template.text)
		return err_set(e, ERR_UNSUPPORTED,
		               "a %s has no pod template in spec.template, so what a replica needs is unknown",
		               f->kind);
	json_span_i64(json_span_get(spec, "replicas"), 0, INT32_MAX, &replicas);
	json_span_i64(json_span_get(json_span_get(object, "metadata"), "generation"), 0, INT64_MAX, &t->generation);
	t->replicas = (int32_t)replicas;
	t->has_shape = true;
	read_queue(t, object);
	if (replica_shape_read(&t->shape, f->names, template, e) < 0)
		return err_wrap(e, "%s/%s", f->kind, f->name);
	if (json_span_path(object, exclusive).text)
		t->shape.uncounted |= UNCOUNTED_POD_AFFINITY;
	if (read_selector(t, spec, e) < 0)
		return err_wrap(e, "%s/%s: spec.selector", f->kind, f->name);
	return 0;
}

static void on_target(void *arg, const struct http_response *response, const struct err *error)
{
	struct shape_fetch *f = arg;
	struct err e = {0};
	if (f->is_abandoned)
		finish(f);
	else if (!response)
		fail(f, error);
	else if (read_target(f, (struct json_span){response->body, response->body_len}, &e) < 0)
		fail(f, &e);
	else
		fetch_claim(f);
}

static int send_get(struct shape_fetch *f, const char *plural, struct err *e)
{
	char path[K8S_PATH_BYTES_MAX];
	snprintf(path, sizeof path, "/%s/%s/namespaces/%s/%s/%s", strchr(f->api_version, '/') ? "apis" : "api",
	         f->api_version, f->namespace_name, plural, f->name);
	return k8s_request(f->client, "GET", path, NULL, NULL, 0, on_target, f, e);
}

static void on_found(void *arg, const struct k8s_resource *resource, const struct err *error)
{
	struct shape_fetch *f = arg;
	struct err e = {0};
	if (f->is_abandoned)
		finish(f);
	else if (!resource)
		fail(f, error);
	else if (send_get(f, resource->plural, &e) < 0)
		fail(f, &e);
}

static int send_first(struct shape_fetch *f, struct err *e)
{
	struct discovery *d = k8s_client_discovery(f->client);
	const struct k8s_resource *known = discovery_find(d, f->api_version, f->kind);
	if (known)
		return send_get(f, known->plural, e);
	return discovery_fetch(d, f->api_version, f->kind, f->namespace_name, on_found, f, e);
}

struct shape_fetch *shape_fetch_start(struct k8s_client *client, const struct scale_ref *ref,
                                      struct resource_names *names, shape_fetch_fn *fn, void *arg, struct err *e)
{
	if (!k8s_name_is_valid(ref->namespace_name) || !k8s_name_is_valid(ref->name)) {
		err_set(e, ERR_INPUT, "invalid target %s %s/%s", ref->kind, ref->namespace_name, ref->name);
		return NULL;
	}
	struct shape_fetch *f = calloc(1, sizeof *f);
	if (!f) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	f->client = client;
	f->names = names;
	f->fn = fn;
	f->arg = arg;
	f->api_version = strdup(ref->api_version);
	f->kind = strdup(ref->kind);
	f->namespace_name = strdup(ref->namespace_name);
	f->name = strdup(ref->name);
	if (!f->api_version || !f->kind || !f->namespace_name || !f->name)
		err_set(e, ERR_INTERNAL, "out of memory");
	else if (send_first(f, e) == 0)
		return f;
	free_fetch(f);
	return NULL;
}

void shape_fetch_abandon(struct shape_fetch *f)
{
	f->is_abandoned = true;
	target_shape_done(&f->result); // the names may end before the reply comes
}
