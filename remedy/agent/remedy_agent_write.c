// SPDX-License-Identifier: Apache-2.0
// The writes of the remediation agent: first the node (taint or cordon, reset, and annotation in one PATCH), then, when
// the API server has accepted that, the evictions that the annotation records, and the deadlines of pods. A failed
// PATCH makes the planner forget the node and start from the annotation that the API server has, as after a restart.

#include "base/base.h"
#include "base/hash.h"
#include "k8s/client/k8s_client.h"
#include "remedy/agent/remedy_agent_private.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_record.h"

#define PATCH_BYTES_MAX (128 * 1024)
#define BODY_BYTES_MAX  2048
#define PATH_BYTES      300

void agent_send(struct remedy_agent *a, const char *method, const char *content_type, struct buf *path,
                struct buf *body, http_done_fn *done, void *arg)
{
	struct err e;
	const struct k8s_request_options o = {.method = method,
	                                      .path = buf_str(path),
	                                      .content_type = content_type,
	                                      .body = body->data,
	                                      .body_len = body->len,
	                                      .max_attempts = 1,
	                                      .done = done,
	                                      .arg = arg};
	a->n_open += !path->failed && !body->failed && k8s_request_with(a->k8s, &o, NULL, &e) == 0;
	buf_done(path);
	buf_done(body);
}

// ---- nodes ----

static bool has_action(const struct remedy_agent *a, int32_t node)
{
	for (size_t i = 0; i < a->n_actions; i++)
		if (a->actions[i].node == node && a->actions[i].kind != REMEDY_HOLD)
			return true;
	return false;
}

static void on_patched(void *arg, const struct http_response *response, const struct err *error)
{
	struct agent_write *w = arg;
	struct remedy_agent *a = w->agent;
	const struct remedy_node *planned = &a->fleet.nodes[w->node];
	struct node_record *n = node_store_find(a, planned->name);
	w->is_done = response != NULL;
	if (n && response) {
		n->record_hash = w->record_hash;
		n->written_ms = a->fleet.now_ms;
		node_store_take(a, n, response->body, response->body_len);
	} else if (n) {
		n->is_known = false;
	}
	for (size_t i = 0; i < a->n_actions; i++) {
		const struct remedy_action *action = &a->actions[i];
		if (action->node != w->node || action->kind == REMEDY_EVICT || action->kind == REMEDY_HOLD)
			continue;
		if (response)
			agent_report_action(a, action);
		else
			agent_report_failure(a, action, error);
	}
	if (!error || error->kind != ERR_CANCELED)
		agent_report_edge(a, &a->is_write_broken, "Cannot write nodes; trying again in each tick",
		                  "Nodes are written again",
		                  error && error->kind != ERR_CONFLICT && error->kind != ERR_NOT_FOUND ? error : NULL);
	a->step(a);
}

static void write_node(struct remedy_agent *a, struct agent_write *w, struct node_record *n)
{
	const struct remedy_node *planned = &a->fleet.nodes[w->node];
	char path[PATH_BYTES], fault[REMEDY_FAULT_NAME_BYTES] = "Unknown";
	struct buf record, body;
	struct err e;
	int gpu = remedy_plan_node_taint(planned);
	const struct remedy_fault *f = gpu >= 0 ? remedy_evidence_of(planned, gpu, a->fleet.now_ms) : NULL;
	if (f)
		remedy_fault_name(f->id, fault);
	buf_init(&record, REMEDY_RECORD_BYTES_MAX);
	buf_init(&body, PATCH_BYTES_MAX);
	remedy_record_write(planned, &record);
	struct node_view_change change = {
	        .record = buf_str(&record), .is_out = gpu >= 0, .cordons = a->options.cordons, .fault = fault};
	for (int i = 1; i < planned->n_gpus; i++)
		if (planned->gpus[i].is_reset_open) {
			change.reset_gpu = planned->gpus[i].uuid;
			change.reset_ms = planned->gpus[i].reset_ms;
		}
	node_view_patch(&n->view, &change, &body);
	w->record_hash = hash_text(HASH_START, buf_str(&record));
	snprintf(path, sizeof path, "/api/v1/nodes/%s", planned->name);
	int rc = record.failed || body.failed ? err_set(&e, ERR_LIMIT, "the annotation does not fit") : 0;
	if (rc == 0)
		rc = k8s_request(a->k8s, "PATCH", path, "application/merge-patch+json", body.data, body.len, on_patched,
		                 w, &e);
	buf_done(&record);
	buf_done(&body);
	a->n_open++;
	if (rc < 0)
		on_patched(w, NULL, &e);
}

void agent_write_nodes(struct remedy_agent *a)
{
	a->writes = arena_calloc(&a->arena, (size_t)a->fleet.n_nodes + 1, sizeof *a->writes);
	for (int32_t k = 0; a->writes && k < a->fleet.n_nodes; k++) {
		const struct remedy_node *planned = &a->fleet.nodes[k];
		struct node_record *n = planned->is_gone ? NULL : node_store_find(a, planned->name);
		if (!n || n->is_bad || !n->is_known)
			continue;
		bool is_old = n->written_ms == 0 ||
		              (planned->n_out > 0 && a->fleet.now_ms - n->written_ms >= AGENT_REFRESH_MS);
		if (!is_old && !has_action(a, k))
			continue;
		struct agent_write *w = &a->writes[a->n_writes++];
		*w = (struct agent_write){.agent = a, .node = k};
		write_node(a, w, n);
	}
}

// ---- pods ----

static size_t find_refused(const struct remedy_agent *a, uint64_t key)
{
	size_t i = 0;
	while (i < a->n_refused && a->refused[i] != key)
		i++;
	return i;
}

bool agent_is_refused(const struct remedy_agent *a, uint64_t key)
{
	return find_refused(a, key) < a->n_refused;
}

static void set_refused(struct remedy_agent *a, uint64_t key, bool is_refused)
{
	size_t i = find_refused(a, key);
	if (is_refused && i == a->n_refused && i < AGENT_REFUSED_MAX)
		a->refused[a->n_refused++] = key;
	else if (!is_refused && i < a->n_refused)
		a->refused[i] = a->refused[--a->n_refused];
}

struct eviction {
	struct remedy_agent *agent;
	const struct remedy_action *action;
	uint64_t key;
};

static void on_evicted(void *arg, const struct http_response *response, const struct err *error)
{
	const struct eviction *ev = arg;
	struct remedy_agent *a = ev->agent;
	// Gone, or a pod of the same name with another uid: what was to be evicted is not there any more.
	bool is_gone = error && (error->kind == ERR_NOT_FOUND || error->kind == ERR_CONFLICT);
	bool is_refused = error && error->kind == ERR_THROTTLED;
	a->n_refusals += is_refused;
	set_refused(a, ev->key, is_refused);
	if (response)
		agent_report_action(a, ev->action);
	else if (!is_gone && !is_refused) // a refusal is a hold of the planner
		agent_report_failure(a, ev->action, error);
	a->step(a);
}

static const struct node_pod *find_pod(const struct node_record *n, const char *name)
{
	for (size_t i = 0; n->pods && i < n->n_pods; i++)
		if (strcmp(n->pods[i].name, name) == 0)
			return &n->pods[i];
	return NULL;
}

static void evict(struct remedy_agent *a, const struct remedy_action *action)
{
	const struct remedy_node *planned = &a->fleet.nodes[action->node];
	const struct remedy_pod *pod = &planned->pods[action->pod];
	const struct node_record *n = node_store_find(a, planned->name);
	const struct node_pod *p = n ? find_pod(n, pod->name) : NULL;
	struct eviction *ev = arena_alloc(&a->arena, sizeof *ev);
	struct buf path, body;
	if (!p || !ev)
		return; // tried again at the time in the annotation
	*ev = (struct eviction){a, action, pod->key};
	buf_init(&path, BODY_BYTES_MAX);
	buf_init(&body, BODY_BYTES_MAX);
	path.failed |= node_pods_eviction(pod->name, p->uid, &path, &body) < 0;
	agent_send(a, "POST", "application/json", &path, &body, on_evicted, ev);
}

void agent_evict_pods(struct remedy_agent *a)
{
	for (size_t w = 0; w < a->n_writes; w++)
		for (size_t i = 0; a->writes[w].is_done && i < a->n_actions; i++)
			if (a->actions[i].kind == REMEDY_EVICT && a->actions[i].node == a->writes[w].node)
				evict(a, &a->actions[i]);
}

// ---- pods that move at a checkpoint ----

int64_t agent_pod_until(const struct remedy_agent *a, const struct remedy_node *n, const struct node_pod *p,
                        uint32_t gpus, bool *ret_is_fixed)
{
	int64_t since_ms = a->fleet.now_ms;
	*ret_is_fixed = false;
	for (int i = 0; n && i < n->n_gpus; i++)
		if (remedy_plan_moves(&a->fleet, n, i, gpus)) {
			since_ms = n->gpus[i].out_ms < since_ms ? n->gpus[i].out_ms : since_ms;
			*ret_is_fixed = true;
		}
	// The workload writes whole seconds.
	bool is_saved = p->saved_ms >= since_ms / 1000 * 1000 && *ret_is_fixed;
	return p->wait_ms == 0 || is_saved ? 0 : since_ms + p->wait_ms;
}

static void on_deadline(void *arg, const struct http_response *response, const struct err *error)
{
	struct remedy_agent *a = arg;
	bool is_gone = error && (error->kind == ERR_NOT_FOUND || error->kind == ERR_CONFLICT);
	if (error && !is_gone)
		a->deadlines_after_ms = a->fleet.now_ms + AGENT_RETRY_MS;
	if (!error || (!is_gone && error->kind != ERR_CANCELED))
		agent_report_edge(a, &a->is_deadline_broken, "Cannot write deadlines of pods",
		                  "Deadlines of pods are written again", error);
	a->step(a);
}

static void write_deadline(struct remedy_agent *a, const struct node_pod *p, const char *deadline)
{
	struct buf path, body;
	buf_init(&path, BODY_BYTES_MAX);
	buf_init(&body, BODY_BYTES_MAX);
	path.failed |= node_pods_deadline(p->name, p->uid, deadline, &path, &body) < 0;
	agent_send(a, "PATCH", "application/merge-patch+json", &path, &body, on_deadline, a);
}

void agent_write_deadlines(struct remedy_agent *a)
{
	for (int32_t k = 0; a->fleet.now_ms >= a->deadlines_after_ms && k < a->fleet.n_nodes; k++) {
		const struct remedy_node *planned = &a->fleet.nodes[k];
		const struct node_record *n = planned->is_gone ? NULL : node_store_find(a, planned->name);
		if (!n || !n->is_known || planned->n_out == 0 || !planned->has_pods)
			continue;
		for (int i = 0; i < planned->n_pods; i++) {
			const struct remedy_pod *pod = &planned->pods[i];
			const struct node_pod *p = pod->name && !pod->is_pinned ? find_pod(n, pod->name) : NULL;
			bool is_fixed = false;
			int64_t until_ms = p ? agent_pod_until(a, planned, p, pod->gpus, &is_fixed) : 0;
			char deadline[NUM_TEXT_BYTES];
			if (!is_fixed || until_ms == 0)
				continue;
			num_format_rfc3339_ms(deadline, until_ms);
			if (!p->deadline || strcmp(p->deadline, deadline) != 0)
				write_deadline(a, p, deadline);
		}
	}
}
