// SPDX-License-Identifier: Apache-2.0
#include "remedy/agent/remedy_agent.h"

#include <signal.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/http/http_server.h"
#include "base/http/http_site.h"
#include "base/process/process.h"
#include "base/timer.h"
#include "k8s/client/k8s_client.h"
#include "k8s/events/event_recorder.h"
#include "promql/promql_source.h"
#include "remedy/agent/remedy_agent_private.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_record.h"
#include "runtime/connections.h"
#include "runtime/shard/shards.h"

#define TICK_ARENA_MAX   (8 * 1024 * 1024)
#define AGENT_TEXT_BYTES 600
#define PATH_BYTES       400

static void reset_fleet(struct remedy_agent *a)
{
	for (struct node_record *n = NULL; (n = node_store_next(a, n));) {
		n->is_known = n->is_bad = n->has_new_pods = false;
		n->pods = NULL;
	}
	size_t bytes = remedy_fleet_bytes(REMEDY_NODES_MAX);
	free(a->block);
	a->block = must_alloc(calloc(1, bytes)); // pages are used as nodes appear
	remedy_fleet_init(&a->fleet, a->block, REMEDY_NODES_MAX, &a->options.limits);
	a->n_refused = 0;
	a->wants_reset = false;
}

// ---- what is read ----

static void on_round(void *arg, const struct err *error)
{
	struct remedy_agent *a = arg;
	a->has_feed = !error;
	if (error)
		a->feed_error = *error;
	a->step(a);
}

struct pod_request {
	struct remedy_agent *agent;
	const char *node;
};

static void on_pods(void *arg, const struct http_response *response, const struct err *error)
{
	const struct pod_request *request = arg;
	struct remedy_agent *a = request->agent;
	struct node_record *n = node_store_find(a, request->node);
	struct err e;
	if (response && n) {
		// The planner points into the old list.
		arena_reset(&n->pod_text);
		n->pods = NULL;
		n->has_new_pods =
		        node_pods_read(response->body, response->body_len, &n->pod_text, &n->pods, &n->n_pods, &e) == 0;
		n->is_known = n->is_known && n->has_new_pods; // else forget it and start from its annotation
		error = n->has_new_pods ? NULL : &e;
	}
	if (!error || error->kind != ERR_CANCELED)
		agent_report_edge(a, &a->is_list_broken, "Cannot list pods; evicting none", "Pods are listed again",
		                  error);
	a->step(a);
}

static void list_pods(struct remedy_agent *a, const char *node)
{
	char path[PATH_BYTES];
	struct err e;
	struct pod_request *request = arena_alloc(&a->arena, sizeof *request);
	const char *name = arena_strdup(&a->arena, node);
	if (!request || !name)
		return; // listed in the next tick
	*request = (struct pod_request){a, name};
	snprintf(path, sizeof path, "/api/v1/pods?fieldSelector=spec.nodeName%%3D%s", node);
	const struct k8s_request_options o = {
	        .method = "GET", .path = path, .verb = "LIST", .max_attempts = 1, .done = on_pods, .arg = request};
	if (k8s_request_with(a->k8s, &o, NULL, &e) == 0)
		a->n_open++;
}

static void start_tick(struct remedy_agent *a)
{
	int n_lists = 0;
	if (a->wants_reset)
		reset_fleet(a);
	a->phase = AGENT_READS;
	a->n_open = 2; // the round, and this function
	arena_reset(&a->arena);
	int32_t first = a->next_list < a->fleet.n_nodes ? a->next_list : 0;
	for (int32_t i = 0; i < a->fleet.n_nodes && n_lists < AGENT_PODS_OF_MAX; i++) {
		int32_t k = (first + i) % a->fleet.n_nodes;
		if (a->fleet.nodes[k].is_gone || a->fleet.nodes[k].n_out == 0)
			continue;
		list_pods(a, a->fleet.nodes[k].name);
		n_lists++;
		a->next_list = k + 1;
	}
	health_feed_start(a->feed);
	a->step(a);
}

// ---- what the planner is given ----

// A bit per GPU; without names, the pod may use any.
static uint32_t gpus_of(const struct remedy_node *n, const char *const *uuids, size_t n_uuids)
{
	uint32_t gpus = n_uuids ? 0 : UINT32_MAX;
	for (size_t k = 0; n && k < n_uuids; k++) {
		int i = remedy_fleet_gpu(n, uuids[k]);
		gpus |= i > 0 ? UINT32_C(1) << i : 0;
	}
	return gpus;
}

// Pods of the control plane and of the agent's own namespace stay, unless their namespace is named.
static bool is_protected(const struct remedy_agent *a, const char *pod)
{
	const char *const spaces[] = {"kube-system", connections_own_namespace(a->options.connections)};
	size_t len = strcspn(pod, "/");
	bool is_one = false;
	for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
		is_one |= spaces[i] && strlen(spaces[i]) == len && strncmp(spaces[i], pod, len) == 0;
	for (const char *const *n = a->options.namespaces; is_one && n && *n; n++)
		is_one = strlen(*n) != len || strncmp(*n, pod, len) != 0;
	return is_one;
}

static void give_pods(struct remedy_agent *a, struct node_record *n, struct remedy_node_seen *seen)
{
	const struct remedy_node *planned = remedy_fleet_find(&a->fleet, seen->name);
	struct remedy_pod_seen *pods = arena_calloc(&a->arena, n->n_pods + 1, sizeof *pods);
	size_t n_pods = 0;
	for (size_t k = 0; pods && k < n->n_pods; k++) {
		const struct node_pod *p = &n->pods[k];
		const char *uuids[REMEDY_GPUS_MAX];
		if (!p->uses_gpus)
			continue; // whatever the series say
		size_t n_uuids = health_feed_gpus(a->feed, seen->name, p->name, uuids, REMEDY_GPUS_MAX);
		const char **copy = arena_calloc(&a->arena, n_uuids + 1, sizeof *copy);
		if (!copy)
			return;
		memcpy(copy, uuids, n_uuids * sizeof *copy);
		bool is_fixed;
		int64_t until_ms = agent_pod_until(a, planned, p, gpus_of(planned, uuids, n_uuids), &is_fixed);
		uint64_t key = hash_mix(hash_text(HASH_START, p->name));
		pods[n_pods++] = (struct remedy_pod_seen){.name = p->name,
		                                          .gpus = copy,
		                                          .n_gpus = n_uuids,
		                                          .is_pinned = p->is_pinned || is_protected(a, p->name),
		                                          .is_refused = agent_is_refused(a, key),
		                                          .until_ms = until_ms};
	}
	seen->pods = pods;
	seen->n_pods = n_pods;
	seen->has_pods = pods != NULL;
}

static uint64_t hash_of(const char *record)
{
	return record ? hash_text(HASH_START, record) : 0;
}

// Forgets the node, and takes over its annotation. Without a valid one, the node is left alone until a person has
// repaired or removed it.
static void start_node(struct remedy_agent *a, struct node_record *n, struct remedy_node *ret_record)
{
	struct err e;
	const char *name = node_store_name(n), *text = n->view.record;
	bool is_same = n->is_bad && n->record_hash == hash_of(text);
	n->record_hash = hash_of(text);
	n->is_known = true;
	n->is_bad = text && remedy_record_read(text, strlen(text), a->fleet.now_ms, ret_record, &e) < 0;
	n->written_ms = a->fleet.now_ms;
	remedy_fold_restore(&a->fleet, name, text && !n->is_bad ? ret_record : NULL);
	if (n->is_bad && !is_same)
		agent_report_hold(a, name, REMEDY_BAD_RECORD, e.msg);
}

// Folds the result of the reset hook into the planner, and makes the agent write its annotation in this tick.
static void take_reset_result(struct remedy_agent *a, struct node_record *n, const struct remedy_node *planned)
{
	int i = planned && n->view.reset_result.gpu[0] ? remedy_fleet_gpu(planned, n->view.reset_result.gpu) : -1;
	if (i < 0 || !planned->gpus[i].is_reset_open)
		return;
	remedy_fold_reset(&a->fleet, planned->name, n->view.reset_result.gpu, n->view.reset_result.time_ms,
	                  n->view.reset_result.is_done);
	if (!planned->gpus[i].is_reset_open)
		n->written_ms = 0;
}

// Whether a list of pods counts: the scheduler may have placed more since the node was in service, or may still do so
// because the API server lacks the taint of a GPU. Without a list, the planner evicts and resets nothing.
static bool are_pods_known(const struct remedy_node *planned)
{
	for (int i = 1; i < planned->n_gpus; i++)
		if (planned->gpus[i].has_gpu_taint && planned->gpus[i].is_in_flight)
			return false;
	return planned->n_out > 0;
}

static void note_contradiction(struct remedy_agent *a, struct node_record *n)
{
	char why[AGENT_TEXT_BYTES];
	if (!a->has_feed)
		return;
	bool is_one = health_feed_contradiction(a->feed, node_store_name(n), why, sizeof why);
	n->contradicted = is_one ? n->contradicted + (n->contradicted <= AGENT_CONTRADICTED) : 0;
	if (n->contradicted == AGENT_CONTRADICTED)
		agent_report_hold(a, node_store_name(n), REMEDY_CONTRADICTED, why);
}

static void fold_node(struct remedy_agent *a, struct node_record *n, struct remedy_node *record)
{
	const char *taints[REMEDY_GPUS_MAX + 1] = {"node"};
	const char *uuids[REMEDY_GPUS_MAX];
	const char *name = node_store_name(n);
	size_t n_uuids = a->has_feed ? health_feed_gpus(a->feed, name, NULL, uuids, REMEDY_GPUS_MAX - 1) : 0;
	bool is_edited = hash_of(n->view.record) != n->record_hash;
	if (!n->view.has_gpus && !n->has_devices) { // whatever the series say
		if (n->is_known)
			node_store_forget(a, n);
		n->is_known = false;
		return;
	}
	note_contradiction(a, n);
	if (!n->is_known || is_edited)
		start_node(a, n, record);
	const struct remedy_node *before = remedy_fleet_find(&a->fleet, name);
	struct remedy_node_seen seen = {.name = name,
	                                .has_dra = before && before->has_dra,
	                                .is_cordoned = node_view_is_cordoned(&n->view),
	                                .is_ready = n->view.is_ready,
	                                .gpus = uuids,
	                                .n_gpus = n_uuids,
	                                .has_gpus = n_uuids > 0,
	                                .taints = taints,
	                                .n_taints = node_view_is_out(&n->view),
	                                .has_taints = a->options.acts,
	                                .taints_lag = true};
	seen.n_taints = agent_rules_of(a, name, taints, seen.n_taints, sizeof taints / sizeof taints[0]);
	if (n->is_bad) { // not taken out, and counted as unavailable
		seen.is_cordoned = true;
		seen.has_taints = false;
	}
	if (n->has_new_pods && a->has_feed) {
		give_pods(a, n, &seen);
		n->has_new_pods = !seen.has_pods;
	}
	enum remedy_reason reason = remedy_fold_node(&a->fleet, &seen, NULL);
	struct remedy_node *planned = remedy_fleet_find(&a->fleet, name);
	take_reset_result(a, n, planned);
	if (planned && (n->has_new_pods || !are_pods_known(planned)))
		planned->has_pods = false; // after a new list, the names would be those of the list that it replaced
	if (reason == REMEDY_LIFTED || reason == REMEDY_ADOPTED) {
		n->written_ms = 0; // the annotation follows
		agent_report_hold(a, name, reason, NULL);
	} else if (reason != REMEDY_NO_REASON) {
		a->n_holds[reason]++;
	}
}

// The planner's clock runs only forward: after the wall clock was set, the agent starts from the annotations, whose
// times in the future are treated as now.
static void check_clock(struct remedy_agent *a)
{
	int64_t step_ms = clock_step_detector_check(&a->clock_step_detector, &a->options.connections->clock);
	if (step_ms == 0)
		return;
	LOG(a->options.log, LOG_WARNING, "Wall clock was set; continuing from the annotations of nodes",
	    LOG_I("stepMs", step_ms), LOG_I("limitMs", CLOCK_STEP_MS));
	promql_sources_clock_was_set(a->options.connections->promql, step_ms);
	a->deadlines_after_ms = 0;
	reset_fleet(a);
}

static void fold(struct remedy_agent *a)
{
	struct remedy_node *record = arena_alloc(&a->arena, sizeof *record);
	if (!record)
		return;
	check_clock(a);
	remedy_fold_time(&a->fleet, clock_wall_ms(&a->options.connections->clock));
	agent_rules_note_devices(a);
	for (struct node_record *n = NULL; (n = node_store_next(a, n));)
		fold_node(a, n, record);
	agent_report_edge(a, &a->is_feed_broken, "No health of GPUs; holding", "Health of GPUs is available again",
	                  a->has_feed ? NULL : &a->feed_error);
	a->n_bad_ticks += !a->has_feed;
	if (!a->has_feed)
		return;
	health_feed_fold(a->feed, &a->fleet, &a->seen);
	agent_rules_note_served(a);
	struct err e;
	if (a->seen.n_unknown)
		err_set(&e, ERR_NOT_FOUND, "label %s=\"%s\": the cluster has no such node with GPUs",
		        a->options.node_label, a->seen.unknown);
	agent_report_edge(a, &a->names_unknown_nodes, "Series name nodes that the cluster lacks",
	                  "Series name only nodes of the cluster", a->seen.n_unknown ? &e : NULL);
}

static void plan(struct remedy_agent *a)
{
	a->n_actions = a->n_writes = 0;
	a->actions = arena_calloc(&a->arena, AGENT_ACTIONS_MAX, sizeof *a->actions);
	if (!a->actions)
		return; // the next tick plans
	a->n_actions = remedy_plan(&a->fleet, true, a->actions, AGENT_ACTIONS_MAX);
	a->is_quick = false;
	for (size_t i = 0; i < a->n_actions; i++) {
		const struct remedy_action *action = &a->actions[i];
		a->is_quick |= action->kind == REMEDY_TAINT; // its pods are listed next
		// Pods are listed only once a node is out of service: no reason to report.
		if (action->kind == REMEDY_HOLD ? action->reason != REMEDY_PODS_UNKNOWN : !a->options.acts)
			agent_report_action(a, action);
	}
}

// ---- phases ----

// Start-up, and the first list of nodes, leave memory that is not used again.
static void trim(struct remedy_agent *a)
{
	if (!a->is_trimmed)
		process_trim();
	a->is_trimmed = true;
}

static void end_tick(struct remedy_agent *a)
{
	a->phase = AGENT_IDLE;
	trim(a);
	a->has_ticked = true;
	a->n_ticks++;
	a->ticked_ms = a->fleet.now_ms;
	if (a->is_stopping && a->is_leader)
		return; // the timer must not outlive the agent
	if (a->is_leader)
		timer_start(&a->timer, a->is_quick ? AGENT_AFTER_ACT_MS : a->options.interval_ms);
}

static void step(struct remedy_agent *a)
{
	while (a->n_open > 0 && --a->n_open == 0) {
		a->n_open = 1; // this function's own request
		if (!a->is_leader || a->is_stopping)
			a->phase = AGENT_EVICTS;
		switch (a->phase) {
		case AGENT_READS:
			fold(a);
			plan(a);
			a->phase = AGENT_WRITES;
			if (a->options.acts)
				agent_write_nodes(a);
			break;
		case AGENT_WRITES:
			a->phase = AGENT_EVICTS;
			if (a->options.acts) {
				agent_write_rules(a);
				agent_evict_pods(a);
				agent_write_deadlines(a);
			}
			break;
		default:
			a->n_open = 0;
			end_tick(a);
			return;
		}
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct remedy_agent *a = arg;
	if (a->is_stopping || a->phase != AGENT_IDLE)
		return;
	if (!node_store_is_synced(a) || !agent_rules_are_ready(a))
		timer_start(&a->timer, AGENT_AFTER_ACT_MS);
	else if (a->is_leader)
		start_tick(a);
	else
		trim(a);
}

// ---- the lease, the watch, signals ----

static void on_gained(void *arg, int32_t shard)
{
	struct remedy_agent *a = arg;
	a->is_leader = a->wants_reset = true;
	if (a->phase == AGENT_IDLE)
		timer_start(&a->timer, 0);
}

static void on_lost(void *arg, int32_t shard)
{
	struct remedy_agent *a = arg;
	a->is_leader = false;
	event_del(&a->timer);
}

static bool is_busy(void *arg, int32_t shard)
{
	const struct remedy_agent *a = arg;
	return a->phase != AGENT_IDLE;
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct remedy_agent *a = arg;
	LOG(a->options.log, LOG_INFO, "Stopping", LOG_S("signal", fd == SIGTERM ? "SIGTERM" : "SIGINT"));
	a->is_stopping = true;
	event_base_loopbreak(a->loop);
}

static int open_parts(struct remedy_agent *a, struct err *e)
{
	static const struct shards_callbacks callbacks = {on_gained, on_lost, is_busy};
	struct connections *to = a->options.connections;
	const struct event_recorder_options recorder = {
	        .client = to->k8s, .clock = &to->clock, .component = "gpuscale-remediate", .instance = ""};
	struct health_feed_options feed = {.node_label = a->options.node_label,
	                                   .matchers = a->options.matchers,
	                                   .heat_ms = a->options.heat_ms,
	                                   .done = on_round,
	                                   .arg = a};
	feed.source = promql_sources_find(to->promql, NULL, e);
	a->feed = feed.source ? health_feed_new(&feed, e) : NULL;
	a->recorder = a->feed ? event_recorder_new(&recorder, e) : NULL;
	if (!a->recorder || node_store_open(a, e) < 0)
		return -1;
	if (a->options.taints_devices && agent_rules_open(a, e) < 0)
		return -1;
	reset_fleet(a);
	a->on_term = evsignal_new(a->loop, SIGTERM, on_signal, a);
	a->on_int = evsignal_new(a->loop, SIGINT, on_signal, a);
	if (!a->on_term || !a->on_int || event_add(a->on_term, NULL) < 0 || event_add(a->on_int, NULL) < 0)
		return err_set(e, ERR_INTERNAL, "cannot watch signals");
	a->is_leader = !a->options.election;
	if (a->options.election && connections_elect(to, a->options.election, &callbacks, a, a->options.log, e) < 0)
		return -1;
	return a->options.listen && a->options.listen[0] ? agent_pages_open(a, e) : 0;
}

struct remedy_agent *remedy_agent_new(const struct remedy_agent_options *options, struct err *e)
{
	struct remedy_agent *a = must_alloc(calloc(1, sizeof *a));
	a->step = step;
	a->options = *options;
	a->options.limits.is_answered = options->acts;
	a->k8s = options->connections->k8s;
	a->loop = options->connections->loop;
	arena_init(&a->arena, TICK_ARENA_MAX);
	clock_step_detector_init(&a->clock_step_detector, &options->connections->clock, CLOCK_STEP_MS);
	evtimer_assign(&a->timer, a->loop, on_timer, a);
	if (open_parts(a, e) < 0) {
		remedy_agent_disconnect(a);
		remedy_agent_free(a);
		return NULL;
	}
	return a;
}

void remedy_agent_run(struct remedy_agent *a)
{
	if (a->server)
		LOG(a->options.log, LOG_INFO, "Serving", LOG_S("listen", a->options.listen),
		    LOG_I("port", http_server_port(a->server)));
	LOG(a->options.log, LOG_INFO, a->options.acts ? "Remediation acts" : "Dry run: remediation changes no node",
	    LOG_I("maxUnavailable", a->options.limits.max_nodes),
	    LOG_I("maxUnavailablePercent", a->options.limits.max_percent));
	timer_start(&a->timer, 0);
	event_base_dispatch(a->loop);
	event_del(&a->timer);
	if (a->options.connections->shards)
		shards_stop(a->options.connections->shards);
}

void remedy_agent_disconnect(struct remedy_agent *a)
{
	if (!a)
		return;
	http_server_free(a->server);
	free(a->site);
	a->is_stopping = true;
	event_del(&a->timer);
	node_store_close(a);
	agent_rules_close(a);
}

void remedy_agent_free(struct remedy_agent *a)
{
	if (!a)
		return;
	health_feed_free(a->feed);
	event_recorder_free(a->recorder);
	timer_free(a->on_term);
	timer_free(a->on_int);
	arena_done(&a->arena);
	free(a->block);
	free(a);
}
