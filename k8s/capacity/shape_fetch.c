// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/shape_fetch.h"

#include "base/base.h"
#include "base/json/json_path.h"
#include "k8s/cache/target_decode.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/label_selector.h"
#include "k8s/client/scale.h"

#define KUEUE_QUEUE_LABEL "kueue.x-k8s.io/queue-name"
// LeaderWorkerSet: the controller adds pod affinity to its pods.
#define EXCLUSIVE_ANNOTATION "leaderworkerset.sigs.k8s.io/exclusive-topology"

struct shape_fetch {
	struct scale_ref ref; // first; see scale_ref_copy()
	struct k8s_client *client;
	struct resource_names *names;
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

static void finish(struct shape_fetch *f)
{
	if (f->is_abandoned)
		target_shape_done(&f->result);
	else
		f->fn(f->arg, &f->result);
	free(f);
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
	         f->ref.namespace_name, claim->template_name);
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

static int read_selector(struct target_shape *t, struct json_span spec, const char *scale_selector, struct err *e)
{
	char text[SCALE_SELECTOR_BYTES_MAX];
	struct json_span selector = json_span_get(spec, "selector");
	bool is_known = scale_selector[0];
	if (!is_known && json_span_kind(selector) != '{')
		return 0; // not a kind of apps/v1: its pods are not recognized
	if (!is_known && label_selector_render(selector, text, sizeof text, e) < 0)
		return -1;
	t->selector = label_selector_parse(is_known ? scale_selector : text, e);
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

// Returns the value at a path of the row of the kind; absent when it has none.
static struct json_span find(const struct shape_fetch *f, const struct workload_kind *k, const char *pattern,
                             struct json_span object)
{
	char path[JSON_PATH_BYTES_MAX + 1];
	struct json_span value = {NULL, 0};
	if (!workload_kind_fill(k, pattern, f->ref.path, f->ref.name, path, sizeof path) ||
	    json_path_find(object, path, &value, NULL, NULL) < 0)
		value.text = NULL;
	return value;
}

// Finds the template of the pods of a replica, all alike, and how many they are. Returns 0, or -1 and *e.
static int find_pods(struct shape_fetch *f, struct json_span object, struct json_span *ret_template, struct err *e)
{
	const struct workload_kind *k = workload_kind_find(f->ref.api_version, f->ref.kind, f->ref.path);
	struct json_span other = find(f, k, k->other_template, object), size = find(f, k, k->pods, object);
	int64_t pods = 1; // the default of an absent field
	if (other.text && json_span_kind(other) != 'n')
		return err_set(e, ERR_UNSUPPORTED,
		               "the leaders of a %s have a leaderTemplate, so what a replica needs is not counted",
		               f->ref.kind);
	if (size.text && !json_span_i64(size, 1, WORKLOAD_GROUP_PODS_MAX, &pods))
		return err_set(e, ERR_INPUT, "%s: expected a number of pods from 1 to %d", k->pods,
		               WORKLOAD_GROUP_PODS_MAX);
	f->result.pods = (int32_t)pods;
	*ret_template = find(f, k, k->pod_spec, object);
	if (!ret_template->text)
		return err_set(e, ERR_UNSUPPORTED, "a %s has no pod template in %s, so what a replica needs is unknown",
		               f->ref.kind, k->pod_spec ? k->pod_spec : "its spec");
	return 0;
}

static int read_target(struct shape_fetch *f, struct json_span object, struct err *e)
{
	static const char *const exclusive[] = {"metadata", "annotations", EXCLUSIVE_ANNOTATION, NULL};
	struct target_shape *t = &f->result;
	struct json_span spec = json_span_get(object, "spec"), template;
	struct scale scale = {0};
	int64_t replicas = 1; // the default of an absent field
	t->pods = 1;
	if (find_pods(f, object, &template, e) < 0)
		return err_wrap(e, "%s/%s", f->ref.kind, f->ref.name);
	if (!f->ref.path)
		json_span_i64(json_span_get(spec, "replicas"), 0, INT32_MAX, &replicas);
	else if (scale_path_read(&f->ref, object, &scale, NULL) == 0)
		replicas = scale.spec_replicas;
	json_span_i64(json_span_get(json_span_get(object, "metadata"), "generation"), 0, INT64_MAX, &t->generation);
	t->replicas = (int32_t)replicas;
	t->has_shape = true;
	read_queue(t, object);
	if (replica_shape_read(&t->shape, f->names, RESOURCE_NEEDED, template, e) < 0)
		return err_wrap(e, "%s/%s", f->ref.kind, f->ref.name);
	if (json_span_path(object, exclusive).text)
		t->shape.uncounted |= UNCOUNTED_POD_AFFINITY;
	if (read_selector(t, spec, scale.selector, e) < 0)
		return err_wrap(e, "%s/%s: spec.selector", f->ref.kind, f->ref.name);
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

struct shape_fetch *shape_fetch_start(struct k8s_client *client, const struct scale_ref *ref,
                                      struct resource_names *names, shape_fetch_fn *fn, void *arg, struct err *e)
{
	if (!k8s_name_is_valid(ref->namespace_name) || !k8s_name_is_valid(ref->name)) {
		err_set(e, ERR_INPUT, "invalid target %s %s/%s", ref->kind, ref->namespace_name, ref->name);
		return NULL;
	}
	struct shape_fetch *f = scale_ref_copy(ref, sizeof *f);
	if (!f) {
		err_no_memory(e);
		return NULL;
	}
	f->client = client;
	f->names = names;
	f->fn = fn;
	f->arg = arg;
	if (scale_get_object(client, &f->ref, on_target, f, e) == 0)
		return f;
	free(f);
	return NULL;
}

void shape_fetch_abandon(struct shape_fetch *f)
{
	f->is_abandoned = true;
	target_shape_done(&f->result); // the names may end before the reply comes
}
