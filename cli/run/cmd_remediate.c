// SPDX-License-Identifier: Apache-2.0
// gpuscale remediate: takes failing GPUs out of service and returns them; with --replay FILE, the planner as a filter,
// so that anyone can replay an incident.
#include <argp.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/num.h"
#include "base/print.h"
#include "base/process/process_trim.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/line_filter.h"
#include "remedy/agent/remedy_agent.h"
#include "remedy/agent/remedy_pages.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_replay.h"
#include "runtime/connections.h"
#include "runtime/options/controller_options.h"
#include "runtime/options/ha_options.h"

#define COMMAND         "gpuscale remediate"
#define CLEAN_MAX_MS    REMEDY_DAY_MS
#define INTERVAL_MIN_MS 1000
#define INTERVAL_MAX_MS 60000
#define NAMESPACES_MAX  8 // kube-system and the agent's own are the only ones that need it

struct remediate_args {
	const char *replay;
	struct remedy_limits limits;
	struct prometheus_options prometheus;
	struct kube_options kube;
	struct log_options log;
	struct ha_options ha;
	struct series_options series;
	const char *namespaces[NAMESPACES_MAX + 1]; // of --evict-in
	size_t n_namespaces;
	const char *listen, *node_label;
	int64_t interval_ms;
	bool acts, cordons, taints_devices;
};

enum {
	KEY_REPLAY = 0x780,
	KEY_NODES,
	KEY_PERCENT,
	KEY_ATTEMPTS,
	KEY_CLEAN,
	KEY_RESET,
	KEY_DRAIN,
	KEY_CORDON,
	KEY_DEVICES,
	KEY_ACT,
	KEY_INTERVAL,
	KEY_NODE_LABEL,
	KEY_LISTEN,
	KEY_EVICT_IN
};

static int32_t whole(const char *arg, int32_t min, int32_t max, const char *flag, struct argp_state *state)
{
	struct err e;
	int64_t v = 0;
	if (num_parse_i64(arg, strlen(arg), min, max, &v, &e) < 0)
		print_usage(state, "%s: %s", flag, e.msg);
	return (int32_t)v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct remediate_args *a = state->input;
	struct err e;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->prometheus;
		state->child_inputs[1] = &a->kube;
		state->child_inputs[2] = &a->log;
		state->child_inputs[3] = &a->ha;
		state->child_inputs[4] = &a->series;
		return 0;
	case KEY_ACT:
		a->acts = true;
		return 0;
	case KEY_INTERVAL:
		a->interval_ms = option_duration_ms("--interval", arg, INTERVAL_MIN_MS, state);
		if (a->interval_ms > INTERVAL_MAX_MS)
			print_usage(state, "--interval: must be 1s to 1m");
		return 0;
	case KEY_NODE_LABEL:
		a->node_label = arg;
		return 0;
	case KEY_EVICT_IN:
		if (a->n_namespaces == NAMESPACES_MAX)
			print_usage(state, "more than %d --evict-in", NAMESPACES_MAX);
		a->namespaces[a->n_namespaces++] = arg;
		return 0;
	case KEY_LISTEN:
		a->listen = arg;
		return 0;
	case KEY_REPLAY:
		a->replay = arg;
		return 0;
	case KEY_NODES:
		a->limits.max_nodes = whole(arg, 0, REMEDY_NODES_MAX, "--max-unavailable", state);
		return 0;
	case KEY_PERCENT:
		a->limits.max_percent = whole(arg, 0, 100, "--max-unavailable-percent", state);
		return 0;
	case KEY_ATTEMPTS:
		a->limits.attempts = whole(arg, 1, REMEDY_ATTEMPTS_MAX, "--attempts", state);
		return 0;
	case KEY_CLEAN:
		if (num_parse_flag_duration_ms(arg, strlen(arg), &a->limits.clean_ms, &e) < 0)
			print_usage(state, "--clean: %s", e.msg);
		if (a->limits.clean_ms < 60000 || a->limits.clean_ms > CLEAN_MAX_MS)
			print_usage(state, "--clean: must be 1m to 24h");
		return 0;
	case KEY_RESET:
		a->limits.can_reset = true;
		return 0;
	case KEY_DRAIN:
		a->limits.drains = true;
		return 0;
	case KEY_CORDON:
		a->cordons = true;
		return 0;
	case KEY_DEVICES:
		a->taints_devices = true;
		return 0;
	case ARGP_KEY_ARG:
		print_usage(state, "unexpected argument \"%s\"; the file is named by --replay", arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->replay && a->acts && !series_options_matchers(&a->series))
			print_usage(state,
			            "--act needs --series-matcher, because any pod that Prometheus scrapes can expose "
			            "series about failing GPUs: name the labels that only the exporter's scrape sets, "
			            "such as --series-matcher='job=\"gpuscale-exporter/gpuscale-exporter\"' "
			            "(docs/security.md)");
		if (!a->replay && a->ha.n_shards > 1)
			print_usage(state, "--shards: one process remediates, so there is one lease");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int answer(void *context, const char *line, size_t len, struct buf *out, struct err *e)
{
	return remedy_replay_answer(context, line, len, out, e);
}

static int replay(struct remediate_args *args)
{
	struct remedy_replay *replay = remedy_replay_new(&args->limits);
	if (!replay) {
		print_error(COMMAND ": out of memory\n");
		return EXIT_FAILED;
	}
	struct line_filter filter = {COMMAND, REMEDY_LINE_BYTES_MAX, replay, answer, NULL, args->replay};
	int code = line_filter_run(&filter);
	remedy_replay_free(replay);
	return code;
}

static int run(struct remediate_args *args)
{
	struct err e;
	struct connections connections;
	struct clock clock;
	clock_init_real(&clock);
	process_return_large_blocks();
	struct log *log = log_new(STDERR_FILENO, args->log.format, args->log.level, &clock);
	if (!log) {
		print_error(COMMAND ": out of memory\n");
		return EXIT_FAILED;
	}
	int code = EXIT_FAILED;
	if (connections_open_for(&connections, &args->prometheus, &args->kube, &args->ha, NULL, &e) < 0) {
		print_error(COMMAND ": %s\n", e.msg);
		code = err_kind_info(e.kind)->exit_code;
		log_free(log);
		return code;
	}
	const struct remedy_agent_options options = {.connections = &connections,
	                                             .election = connections.elects ? &args->ha : NULL,
	                                             .limits = args->limits,
	                                             .node_label = args->node_label,
	                                             .matchers = series_options_matchers(&args->series),
	                                             .namespaces = args->namespaces,
	                                             .interval_ms = args->interval_ms,
	                                             .acts = args->acts,
	                                             .cordons = args->cordons,
	                                             .taints_devices = args->taints_devices,
	                                             .log = log};
	struct remedy_agent *agent = remedy_agent_new(&options, &e);
	bool serves = agent && args->listen[0];
	struct remedy_pages *pages = serves ? remedy_pages_new(connections.loop, args->listen, agent, &e) : NULL;
	if (agent && (pages || !serves)) {
		if (pages)
			LOG(log, LOG_INFO, "Serving", LOG_S("listen", args->listen),
			    LOG_I("port", remedy_pages_port(pages)));
		remedy_agent_run(agent);
		code = EXIT_OK;
	} else {
		print_error(COMMAND ": %s\n", e.msg);
	}
	remedy_pages_free(pages);
	remedy_agent_disconnect(agent);
	connections_cancel(&connections);
	remedy_agent_free(agent);
	connections_close(&connections);
	log_free(log);
	return code;
}

int cmd_remediate(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"replay", KEY_REPLAY, "FILE", 0,
	         "run the planner on this recording of an incident, one JSON object per line; - for standard input. "
	         "Changes no cluster",
	         0},
	        {"act", KEY_ACT, 0, 0, "change nodes and evict pods (default: a dry run, which only reports)", 0},
	        {"interval", KEY_INTERVAL, "DURATION", 0, "time between two readings, 1s to 1m (default 15s)", 0},
	        {"node-label", KEY_NODE_LABEL, "NAME", 0,
	         "label of the series of the exporter that has the name of the node (default Hostname)", 0},
	        {"listen", KEY_LISTEN, "ADDR", 0, "address of /metrics, /livez, /readyz (default :8080, '' = none)", 0},
	        {"max-unavailable", KEY_NODES, "N", 0,
	         "most nodes out of service at the same time, including those that are cordoned or not ready (default "
	         "5)",
	         0},
	        {"max-unavailable-percent", KEY_PERCENT, "P", 0,
	         "the same limit in percent of all nodes; the smaller one applies (default 10)", 0},
	        {"attempts", KEY_ATTEMPTS, "N", 0,
	         "how often a node may be taken out of service within 24 hours (default 3)", 0},
	        {"clean", KEY_CLEAN, "DURATION", 0,
	         "time without a fault before a GPU returns to service; doubles with each attempt of the day (default "
	         "30m)",
	         0},
	        {"evict-in", KEY_EVICT_IN, "NAMESPACE", 0,
	         "also evict pods of this namespace although it is kube-system or the agent's own (repeatable)", 0},
	        {"cordon", KEY_CORDON, 0, 0, "cordon nodes instead of tainting them", 0},
	        {"device-taints", KEY_DEVICES, 0, 0,
	         "taint single GPUs with DeviceTaintRules where dynamic resource allocation serves them", 0},
	        {"drain", KEY_DRAIN, 0, 0,
	         "evict every pod with GPUs from a node that is out of service (default: the pods on the failing GPU)",
	         0},
	        {"reset", KEY_RESET, 0, 0,
	         "request resets of failing GPUs that no pod uses from the reset hook of the node", 0},
	        {0}};
	static const struct argp_child children[] = {{&prometheus_argp, 0, NULL, 0}, {&kube_argp, 0, NULL, 0},
	                                             {&log_argp, 0, NULL, 0},        {&ha_argp, 0, NULL, 0},
	                                             {&series_argp, 0, NULL, 0},     {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "",
	        "Take nodes whose GPUs fail out of service, evict the pods that use these GPUs, and return the nodes "
	        "after a time without faults. Reads the series of gpuscale-exporter from a Prometheus. With --replay: "
	        "run the planner as a filter; read one observation per line (an event, telemetry, the state of a "
	        "node, or a tick), and write the actions that follow, one per line, both JSON. Every action counts as "
	        "carried out."
	        "\vFormats, rules and limits: docs/remediation.md. An invalid line is answered with {\"error\": "
	        "\"...\"} and changes nothing.\n\nExit status: 0 stopped, or every line was valid; 1 if not; 2 for "
	        "wrong usage.",
	        children,
	        NULL,
	        NULL};
	struct remediate_args args = {
	        .limits = {.max_nodes = 5, .max_percent = 10, .attempts = 3, .clean_ms = INT64_C(1800000)},
	        .listen = ":8080",
	        .node_label = "Hostname",
	        .interval_ms = 15000};
	prometheus_options_init(&args.prometheus);
	ha_options_init(&args.ha);
	args_parse(&argp, argc, argv, &args);
	return args.replay ? replay(&args) : run(&args);
}
