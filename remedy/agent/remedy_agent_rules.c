// SPDX-License-Identifier: Apache-2.0
// DeviceTaintRules of the remediation agent. The annotation of a node records first that the taint of a GPU changes;
// then the agent creates or deletes the rule until the watch shows the change. Both requests have the same effect
// however often they are sent, so a process that exits between them leaves nothing that the next one does not complete.
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "k8s/client/k8s_client.h"
#include "remedy/agent/remedy_agent_private.h"
#include "remedy/plan/remedy_state.h"

#define RULE_BYTES_MAX 4096

bool agent_rules_are_ready(const struct remedy_agent *a)
{
	return !a->devices || device_rules_are_answered(a->devices);
}

static bool are_known(const struct remedy_agent *a)
{
	return a->devices && device_rules_are_synced(a->devices);
}

size_t agent_rules_of(const struct remedy_agent *a, const char *node, const char **uuids, size_t n, size_t max)
{
	const struct remedy_node *planned = are_known(a) ? NULL : remedy_fleet_find(&a->fleet, node);
	struct device_rule rule;
	for (const void *at = NULL; are_known(a) && n < max && device_rules_next(a->devices, &at, &rule);)
		if (strcmp(rule.node, node) == 0)
			uuids[n++] = rule.gpu;
	// Unknown rules are treated as unchanged: a change in flight is not known yet, so the rules before it apply.
	for (int i = 1; planned && n < max && i < planned->n_gpus; i++)
		if (planned->gpus[i].has_gpu_taint != planned->gpus[i].is_in_flight)
			uuids[n++] = planned->gpus[i].uuid;
	return n;
}

void agent_rules_note_served(struct remedy_agent *a)
{
	for (int32_t k = 0; a->devices && k < a->fleet.n_nodes; k++) {
		struct remedy_node *n = &a->fleet.nodes[k];
		if (n->is_gone || n->n_faults == 0)
			continue;
		n->has_dra = are_known(a);
		for (int i = 1; n->has_dra && i < n->n_gpus; i++)
			n->has_dra = !n->gpus[i].is_listed || device_rules_serve(a->devices, n->name, n->gpus[i].uuid);
	}
}

// ---- writing ----

struct rule_request {
	struct remedy_agent *agent;
	const char *name; // to delete; NULL: to create
};

static void on_rule(void *arg, const struct http_response *response, const struct err *error)
{
	const struct rule_request *request = arg;
	struct remedy_agent *a = request->agent;
	bool is_same = error && error->kind == (request->name ? ERR_NOT_FOUND : ERR_CONFLICT);
	if (a->devices && request->name && (response || is_same))
		device_rules_forget(a->devices, request->name);
	else if (a->devices && response)
		device_rules_take(a->devices, response->body, response->body_len);
	if (!error || (!is_same && error->kind != ERR_CANCELED))
		agent_report_edge(a, &a->is_rule_broken, "Cannot write DeviceTaintRules; trying again in each tick",
		                  "DeviceTaintRules are written again", error);
	a->step(a);
}

static void send_rule(struct remedy_agent *a, const char *method, const char *path, const struct buf *body,
                      const char *name)
{
	struct err e;
	struct rule_request *request = arena_alloc(&a->arena, sizeof *request);
	const char *copy = name ? arena_strdup(&a->arena, name) : NULL;
	if (!request || (name && !copy) || body->failed)
		return; // the next tick
	*request = (struct rule_request){a, copy};
	const struct k8s_request_options o = {.method = method,
	                                      .path = path,
	                                      .content_type = "application/json",
	                                      .body = body->data,
	                                      .body_len = body->len,
	                                      .max_attempts = 1,
	                                      .done = on_rule,
	                                      .arg = request};
	a->n_open += k8s_request_with(a->k8s, &o, NULL, &e) == 0;
}

static void create_rule(struct remedy_agent *a, const struct remedy_node *n, int gpu)
{
	char fault[REMEDY_FAULT_NAME_BYTES] = "Unknown";
	const struct remedy_fault *f = remedy_evidence_of(n, gpu, a->fleet.now_ms);
	struct buf body;
	if (f)
		remedy_evidence_name(f->id, fault);
	buf_init(&body, RULE_BYTES_MAX);
	if (device_rules_write(a->devices, n->name, n->gpus[gpu].uuid, fault, &body) == 0)
		send_rule(a, "POST", DEVICE_RULES_PATH, &body, NULL);
	buf_done(&body);
}

static void delete_rule(struct remedy_agent *a, const struct device_rule *rule)
{
	struct buf body, path;
	struct json_writer w;
	buf_init(&body, RULE_BYTES_MAX);
	buf_init(&path, RULE_BYTES_MAX);
	buf_printf(&path, DEVICE_RULES_PATH "/%s", rule->name);
	json_write_init(&w, &body, 0);
	json_write_object_begin(&w);
	json_write_member_str(&w, "apiVersion", "v1");
	json_write_member_str(&w, "kind", "DeleteOptions");
	json_write_member_object(&w, "preconditions");
	json_write_member_str(&w, "uid", rule->uid);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (!path.failed)
		send_rule(a, "DELETE", buf_str(&path), &body, rule->name);
	buf_done(&body);
	buf_done(&path);
}

// Deletes the rules of GPUs that the annotation of the node records as returned, and of nodes that do not exist.
static void delete_rules(struct remedy_agent *a)
{
	struct device_rule rule;
	for (const void *at = NULL; device_rules_next(a->devices, &at, &rule);) {
		const struct remedy_node *planned = remedy_fleet_find(&a->fleet, rule.node);
		const struct node_record *n = node_store_find(a->nodes, rule.node);
		int gpu = planned ? remedy_fleet_gpu(planned, rule.gpu) : -1;
		if (!n ||
		    (n->is_known && gpu > 0 && planned->gpus[gpu].is_in_flight && !planned->gpus[gpu].has_gpu_taint))
			delete_rule(a, &rule);
	}
}

void agent_write_rules(struct remedy_agent *a)
{
	if (!are_known(a))
		return;
	delete_rules(a);
	for (int32_t k = 0; k < a->fleet.n_nodes; k++) {
		const struct remedy_node *planned = &a->fleet.nodes[k];
		const struct node_record *n = planned->is_gone ? NULL : node_store_find(a->nodes, planned->name);
		for (int i = 1; n && n->is_known && !n->is_bad && i < planned->n_gpus; i++)
			if (planned->gpus[i].is_in_flight && planned->gpus[i].has_gpu_taint &&
			    !device_rules_has(a->devices, planned->name, planned->gpus[i].uuid))
				create_rule(a, planned, i);
	}
}
