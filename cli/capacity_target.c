// SPDX-License-Identifier: Apache-2.0
#include "cli/capacity_target.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json_read.h"
#include "cli/kube_session.h"
#include "k8s/cache/target_decode.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/label_selector.h"
#include "k8s/client/object_name.h"

struct lookup {
	struct event_base *loop;
	char plural[DISCOVERY_NAME_BYTES];
	struct err error;
	bool is_done;
};

static void on_found(void *arg, const struct k8s_resource *resource, const struct err *error)
{
	struct lookup *l = arg;
	l->is_done = true;
	if (resource)
		memcpy(l->plural, resource->plural, sizeof l->plural);
	else
		l->error = *error;
	event_base_loopbreak(l->loop);
}

static int find_plural(struct kube_session *session, const struct capacity_target *t, char plural[DISCOVERY_NAME_BYTES],
                       struct err *e)
{
	struct discovery *d = k8s_client_discovery(session->k8s);
	const struct k8s_resource *known = discovery_find(d, t->api_version, t->kind);
	struct lookup l = {.loop = session->loop};
	if (known) {
		memcpy(plural, known->plural, DISCOVERY_NAME_BYTES);
		return 0;
	}
	if (discovery_fetch(d, t->api_version, t->kind, t->namespace_name, on_found, &l, e) < 0)
		return -1;
	while (!l.is_done) {
		if (event_base_dispatch(session->loop) != 0)
			return err_set(e, ERR_INTERNAL, "the event loop exited before the reply");
	}
	if (l.error.kind != ERR_NONE) {
		*e = l.error;
		return -1;
	}
	memcpy(plural, l.plural, sizeof l.plural);
	return 0;
}

static int fetch(struct kube_session *session, const struct capacity_target *t, struct buf *body, struct err *e)
{
	char plural[DISCOVERY_NAME_BYTES], path[K8S_PATH_BYTES_MAX];
	if (!k8s_name_is_valid(t->namespace_name) || !k8s_name_is_valid(t->target_name))
		return err_set(e, ERR_INPUT, "invalid target %s %s/%s", t->kind, t->namespace_name, t->target_name);
	if (find_plural(session, t, plural, e) < 0)
		return -1;
	snprintf(path, sizeof path, "/%s/%s/namespaces/%s/%s/%s", strchr(t->api_version, '/') ? "apis" : "api",
	         t->api_version, t->namespace_name, plural, t->target_name);
	return kube_session_request(session, "GET", path, NULL, NULL, body, e);
}

static int read_selector(struct json_span object, struct label_selector **ret_selector, struct err *e)
{
	char text[SCALE_SELECTOR_BYTES_MAX];
	struct json_span selector = json_span_get(json_span_get(object, "spec"), "selector");
	*ret_selector = NULL;
	if (json_span_kind(selector) != '{')
		return 0; // not a kind of apps/v1: its pods are not recognized
	if (label_selector_render(selector, text, sizeof text, e) < 0)
		return -1;
	*ret_selector = label_selector_parse(text, e);
	return *ret_selector ? 0 : -1;
}

static void count_pending(struct capacity_target *t, const struct capacity *capacity,
                          const struct label_selector *selector)
{
	const struct capacity_waiting *w;
	for (w = capacity_first_waiting(capacity); w && selector; w = w->next) {
		if (strcmp(w->namespace_name, t->namespace_name) != 0 ||
		    !label_selector_matches(selector, w->labels, w->n_labels))
			continue;
		t->pending++;
		if (!t->message[0])
			memcpy(t->message, w->message, sizeof t->message);
	}
}

static int read_target(struct capacity_target *t, struct json_span object, struct capacity *capacity, struct err *e)
{
	struct label_selector *selector;
	struct json_span template = replica_template(object);
	int64_t replicas = 1; // the default of an absent field
	if (!template.text)
		return err_set(e, ERR_UNSUPPORTED,
		               "a %s has no pod template in spec.template, so what a replica needs is "
		               "unknown",
		               t->kind);
	json_span_i64(json_span_get(json_span_get(object, "spec"), "replicas"), 0, INT32_MAX, &replicas);
	t->replicas = (int32_t)replicas;
	t->has_shape = true;
	if (replica_shape_read(&t->shape, capacity_names(capacity), template, e) < 0)
		return err_wrap(e, "%s/%s", t->kind, t->target_name);
	if (read_selector(object, &selector, e) < 0)
		return err_wrap(e, "%s/%s: spec.selector", t->kind, t->target_name);
	count_pending(t, capacity, selector);
	label_selector_free(selector);
	return 0;
}

// Adds what the claims of the pods request, from their templates.
static int read_claims(struct capacity_target *t, struct kube_session *session, struct capacity *capacity,
                       struct err *e)
{
	for (size_t i = 0; i < t->shape.n_claims; i++) {
		const struct replica_claim *claim = &t->shape.claims[i];
		char path[K8S_PATH_BYTES_MAX];
		struct buf body;
		if (claim->claim_name)
			return err_set(e, ERR_UNSUPPORTED,
			               "all replicas share the ResourceClaim %s, so what one more needs "
			               "is not counted",
			               claim->claim_name);
		if (!k8s_name_is_valid(claim->template_name))
			return err_set(e, ERR_INPUT, "invalid resourceClaimTemplateName %s", claim->template_name);
		snprintf(path, sizeof path, "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaimtemplates/%s",
		         t->namespace_name, claim->template_name);
		buf_init(&body, JSON_BYTES_MAX);
		int rc = kube_session_request(session, "GET", path, NULL, NULL, &body, e);
		if (rc == 0)
			rc = replica_shape_add_claim(&t->shape, capacity_names(capacity),
			                             (struct json_span){buf_str(&body), body.len}, e);
		buf_done(&body);
		if (rc < 0)
			return err_wrap(e, "ResourceClaimTemplate %s", claim->template_name);
	}
	return 0;
}

static int read_fit(struct capacity_target *t, struct capacity *capacity, struct err *e)
{
	if (capacity_fit(capacity, &t->shape, &t->fit, e) < 0)
		return -1;
	fit_explain(capacity, &t->fit, t->why);
	return 0;
}

void capacity_target_read(struct capacity_target *t, struct kube_session *session, struct capacity *capacity)
{
	struct buf body;
	buf_init(&body, JSON_BYTES_MAX);
	int rc = fetch(session, t, &body, &t->error);
	if (rc == 0)
		rc = read_target(t, (struct json_span){buf_str(&body), body.len}, capacity, &t->error);
	if (rc == 0)
		rc = read_claims(t, session, capacity, &t->error);
	if (rc == 0)
		rc = read_fit(t, capacity, &t->error);
	if (rc == 0)
		t->error = (struct err){0};
	buf_done(&body);
}

void capacity_target_done(struct capacity_target *t)
{
	if (t->has_shape)
		replica_shape_done(&t->shape);
	t->has_shape = false;
}

void capacity_target_needs(const struct capacity_target *t, const struct resource_names *names,
                           char out[CAPACITY_NEEDS_BYTES])
{
	size_t at = 0;
	out[0] = '\0';
	for (size_t i = 0; i < t->shape.requests.n && at < CAPACITY_NEEDS_BYTES; i++) {
		const struct resource_amount *a = &t->shape.requests.items[i];
		char name[RESOURCE_SHOWN_BYTES];
		resource_show_name(names->names[a->id], name);
		if (a->amount > 0 && resource_is_extended(names->names[a->id]))
			at += (size_t)snprintf(out + at, CAPACITY_NEEDS_BYTES - at, "%s%lld %s", at ? ", " : "",
			                       (long long)a->amount, name);
	}
	if (!out[0])
		snprintf(out, CAPACITY_NEEDS_BYTES, "no GPU");
}
