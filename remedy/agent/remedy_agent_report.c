// SPDX-License-Identifier: Apache-2.0
// The output of the remediation agent: Events on the node, log lines, and the HTTP endpoints with its metrics.

#include "base/base.h"
#include "base/exposition.h"
#include "base/http/http_server.h"
#include "base/http/http_site.h"
#include "k8s/events/event_recorder.h"
#include "remedy/agent/remedy_agent_private.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_record.h"
#include "runtime/endpoint_reply.h"

#define MESSAGE_BYTES 700

static const struct {
	const char *event, *log, *dry_log, *text;
} kinds[REMEDY_KIND__COUNT] = {
        [REMEDY_TAINT] = {"GPUTakenOut", "Took node out of service", "Would take node out of service",
                          "take the node out of service"},
        [REMEDY_UNTAINT] = {"GPUReturned", "Returned node to service", "Would return node to service",
                            "return the node to service"},
        [REMEDY_EVICT] = {"GPUPodEvicted", "Evicted pod", "Would evict pod", "evict the pod"},
        [REMEDY_RESET] = {"GPUResetRequested", "Requested reset of GPU", "Would request reset of GPU",
                          "request a reset of the GPU"},
        [REMEDY_HOLD] = {"", "Holding", "Holding", "hold"},
};

static void record_event(struct remedy_agent *a, const char *node, const char *type, const char *reason,
                         const char *message)
{
	const struct node_record *n = node_store_find(a, node);
	if (!n)
		return;
	const struct event_object object = {
	        .api_version = "v1", .kind = "Node", .namespace_name = "", .name = node, .uid = n->view.uid};
	event_recorder_record(a->recorder, &object, type, reason, message);
}

// "GPU-1: XID79: the GPU reported a fault; pod ml/train-0"
static void describe(const struct remedy_agent *a, const struct remedy_action *action, char out[MESSAGE_BYTES])
{
	const struct remedy_node *n = &a->fleet.nodes[action->node];
	char fault[REMEDY_FAULT_NAME_BYTES] = "";
	if (action->fault != REMEDY_NO_FAULT)
		remedy_fault_name(action->fault, fault);
	bool has_pod = action->pod >= 0 && n->pods[action->pod].name;
	snprintf(out, MESSAGE_BYTES, "%s%s%s%s%s%s%s", action->gpu > 0 ? n->gpus[action->gpu].uuid : "node", ": ",
	         fault, fault[0] ? ": " : "", remedy_reasons[action->reason].sentence, has_pod ? "; pod " : "",
	         has_pod ? n->pods[action->pod].name : "");
}

void agent_report_action(struct remedy_agent *a, const struct remedy_action *action)
{
	char text[MESSAGE_BYTES], message[MESSAGE_BYTES + 64];
	const struct remedy_node *n = &a->fleet.nodes[action->node];
	bool is_hold = action->kind == REMEDY_HOLD;
	const char *reason = remedy_reasons[action->reason].name;
	describe(a, action, text);
	snprintf(message, sizeof message, "%s%s%s%s", a->options.acts || is_hold ? "" : "dry run: would ",
	         a->options.acts || is_hold ? "" : kinds[action->kind].text, a->options.acts || is_hold ? "" : ": ",
	         text);
	if (is_hold)
		a->n_holds[action->reason]++;
	else
		a->n_done[action->kind]++;
	LOG(a->options.log, action->kind == REMEDY_UNTAINT ? LOG_INFO : LOG_WARNING,
	    a->options.acts ? kinds[action->kind].log : kinds[action->kind].dry_log, LOG_S("node", n->name),
	    LOG_S("reason", reason), LOG_S("evidence", text));
	record_event(a, n->name, action->kind == REMEDY_UNTAINT ? "Normal" : "Warning",
	             is_hold ? reason : kinds[action->kind].event, message);
}

void agent_report_failure(struct remedy_agent *a, const struct remedy_action *action, const struct err *error)
{
	a->n_failed[action->kind]++;
	if (error->kind == ERR_CANCELED || error->kind == ERR_CONFLICT)
		return; // stopping; or the node changed meanwhile, and the next tick decides again
	LOG(a->options.log, LOG_ERROR, "Action failed", LOG_S("node", a->fleet.nodes[action->node].name),
	    LOG_S("action", remedy_kind_names[action->kind]), LOG_S("kind", err_kind_info(error->kind)->name),
	    LOG_S("err", error->msg));
}

void agent_report_hold(struct remedy_agent *a, const char *node, enum remedy_reason reason, const char *details)
{
	char message[MESSAGE_BYTES + 64];
	snprintf(message, sizeof message, "%s%s%s", remedy_reasons[reason].sentence, details ? ": " : "",
	         details ? details : "");
	a->n_holds[reason]++;
	LOG(a->options.log, LOG_WARNING, "Holding", LOG_S("node", node), LOG_S("reason", remedy_reasons[reason].name),
	    LOG_S("evidence", message));
	record_event(a, node, "Warning", remedy_reasons[reason].name, message);
}

// ---- metrics ----

static void put(struct buf *out, const char *name, const char *help, enum metric_type type, int64_t value)
{
	exposition_family(out, name, help, type);
	exposition_sample_i64(out, name, NULL, 0, value);
}

static void put_kinds(struct buf *out, const char *name, const char *help, const uint64_t counts[REMEDY_KIND__COUNT])
{
	exposition_family(out, name, help, METRIC_COUNTER);
	for (int k = 0; k < REMEDY_HOLD; k++) {
		const struct exposition_label label = {"action", remedy_kind_names[k]};
		exposition_sample_i64(out, name, &label, 1, (int64_t)counts[k]);
	}
}

static void put_nodes(const struct remedy_agent *a, struct buf *out)
{
	static const char *const states[] = {"known", "out", "unavailable", "allowed", "unreadable"};
	int64_t n_known = 0, n_out = 0, n_bad = 0;
	for (int32_t k = 0; k < a->fleet.n_nodes; k++) {
		n_known += !a->fleet.nodes[k].is_gone;
		n_out += !a->fleet.nodes[k].is_gone && a->fleet.nodes[k].n_out > 0;
	}
	for (const struct node_record *n = NULL; (n = node_store_next(a, n));)
		n_bad += n->is_bad;
	const int64_t values[] = {n_known, n_out, remedy_plan_unavailable(&a->fleet), remedy_plan_allowed(&a->fleet),
	                          n_bad};
	exposition_family(
	        out, "gpuscale_remediation_nodes",
	        "Nodes with GPUs: known, out of service by the agent, unavailable for any reason, allowed to be "
	        "unavailable, and those whose annotation is not a record.",
	        METRIC_GAUGE);
	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
		const struct exposition_label label = {"state", states[i]};
		exposition_sample_i64(out, "gpuscale_remediation_nodes", &label, 1, values[i]);
	}
}

static void put_metrics(const struct remedy_agent *a, struct buf *out)
{
	// clang-format off
	const struct {
		const char *name, *help;
		enum metric_type type;
		int64_t value;
	} rows[] = {
		{"gpuscale_remediation_acts", "1 if the agent changes nodes, 0 in a dry run.", METRIC_GAUGE, a->options.acts},
		{"gpuscale_remediation_leader", "1 if this process acts, 0 while another process holds the lease.", METRIC_GAUGE, a->is_leader},
		{"gpuscale_remediation_ticks_total", "Ticks since the start.", METRIC_COUNTER, (int64_t)a->n_ticks},
		{"gpuscale_remediation_ticks_without_data_total", "Ticks in which a query failed, so no answer was used.", METRIC_COUNTER, (int64_t)a->n_bad_ticks},
		{"gpuscale_remediation_last_tick_timestamp_seconds", "Time of the last tick.", METRIC_GAUGE, a->ticked_ms / 1000},
		{"gpuscale_remediation_gpus", "GPUs with telemetry in the last tick with data.", METRIC_GAUGE, (int64_t)a->seen.n_gpus},
	};
	// clang-format on
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		put(out, rows[i].name, rows[i].help, rows[i].type, rows[i].value);
	put_nodes(a, out);
	put_kinds(out, "gpuscale_remediation_actions_total",
	          "Actions that were carried out; in a dry run, those that would have been.", a->n_done);
	put_kinds(out, "gpuscale_remediation_actions_failed_total", "Actions that the API server did not accept.",
	          a->n_failed);
	put(out, "gpuscale_remediation_evictions_refused_total", "Evictions that a PodDisruptionBudget refused.",
	    METRIC_COUNTER, (int64_t)a->n_refusals);
	exposition_family(out, "gpuscale_remediation_holds_total", "Actions that were needed and not taken, and why.",
	                  METRIC_COUNTER);
	for (int k = REMEDY_MAX_UNAVAILABLE; k < REMEDY_REASON__COUNT; k++) {
		const struct exposition_label label = {"reason", remedy_reasons[k].name};
		exposition_sample_i64(out, "gpuscale_remediation_holds_total", &label, 1, (int64_t)a->n_holds[k]);
	}
}

// ---- pages ----

#define PAGE_BYTES_MAX (64 * 1024)
#define BODY_BYTES_MAX 4096
#define SERVICE_HOSTS  "*.svc,*.svc.cluster.local"

// A response proves that the event loop is running.
static void get_livez(void *arg, struct http_exchange *x)
{
	if (endpoint_is_read(x))
		http_exchange_reply_text(x, 200, "ok\n");
}

// Whether the nodes are known, and a tick was completed or another process holds the lease.
static bool is_ready_now(const struct remedy_agent *a)
{
	return node_store_is_synced(a) && (a->has_ticked || !a->is_leader);
}

static void get_readyz(void *arg, struct http_exchange *x)
{
	bool is_ready = is_ready_now(arg);
	if (endpoint_is_read(x))
		http_exchange_reply_text(x, is_ready ? 200 : 503, is_ready ? "ok\n" : "not ready\n");
}

static void get_metrics(void *arg, struct http_exchange *x)
{
	struct buf b;
	if (!endpoint_is_read(x))
		return;
	buf_init(&b, PAGE_BYTES_MAX);
	put_metrics(arg, &b);
	endpoint_reply(x, 200, EXPOSITION_CONTENT_TYPE, &b);
}

int agent_pages_open(struct remedy_agent *a, struct err *e)
{
	a->site = http_site_new(SERVICE_HOSTS, e);
	if (!a->site)
		return -1;
	http_site_add_own_name(a->site);
	const struct http_server_options o = {
	        .loop = a->loop, .listen = a->options.listen, .max_body_bytes = BODY_BYTES_MAX, .site = a->site};
	a->server = http_server_new(&o, e);
	return a->server && http_server_route(a->server, "/livez", get_livez, a, e) == 0 &&
	                       http_server_route(a->server, "/readyz", get_readyz, a, e) == 0 &&
	                       http_server_route(a->server, "/healthz", get_livez, a, e) == 0 &&
	                       http_server_route(a->server, "/metrics", get_metrics, a, e) == 0
	               ? 0
	               : -1;
}
