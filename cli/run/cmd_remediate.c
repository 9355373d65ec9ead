// SPDX-License-Identifier: Apache-2.0
// gpuscale remediate: takes failing GPUs out of service and returns them; with --replay FILE, the planner as a filter,
// so that anyone can replay an incident.
#include "base/process/process.h"
#include "cli/term/cli.h"
#include "cli/term/line_filter.h"
#include "remedy/agent/remedy_agent.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_replay.h"

#define COMMAND         "gpuscale remediate"
#define CLEAN_MAX_MS    REMEDY_DAY_MS
#define INTERVAL_MIN_MS 1000
#define INTERVAL_MAX_MS 60000
#define CLEAN_MIN_MS    60000
#define HEAT_MIN_MS     60000
#define HEAT_MAX_MS     (6 * 60 * 60 * 1000)
#define NAMESPACES_MAX  8 // kube-system and the agent's own are the only ones that need it

struct remediate_args {
	const char *replay;
	struct remedy_agent_options agent; // without what run() opens
	struct prometheus_options prometheus;
	struct kube_options kube;
	struct log_options log;
	struct ha_options ha;
	struct series_options series;
	const char *namespaces[NAMESPACES_MAX + 1]; // of --evict-in
	size_t n_namespaces;
};

static void check(void *options, struct argp_state *state)
{
	const struct remediate_args *a = options;
	if (a->agent.interval_ms > INTERVAL_MAX_MS)
		print_usage(state, "--interval: must be 1s to 1m");
	if (a->agent.limits.clean_ms < CLEAN_MIN_MS || a->agent.limits.clean_ms > CLEAN_MAX_MS)
		print_usage(state, "--clean: must be 1m to 24h");
	if (a->agent.heat_ms > HEAT_MAX_MS)
		print_usage(state, "--heat: must be 1m to 6h");
	if (!a->replay && a->agent.acts && !series_options_matchers(&a->series))
		print_usage(state, "--act needs --series-matcher, because any pod that Prometheus scrapes can expose "
		                   "series about failing GPUs: name the labels that only the exporter's scrape sets, "
		                   "such as --series-matcher='job=\"gpuscale-exporter/gpuscale-exporter\"' "
		                   "(docs/security.md)");
	if (!a->replay && a->ha.n_shards > 1)
		print_usage(state, "--shards: one process remediates, so there is one lease");
}

// clang-format off
#define FLAGS_OF struct remediate_args
static const struct flag_set command = {
	.args = "",
	.about = "Take nodes whose GPUs fail out of service, evict the pods that use these GPUs, and return the nodes after a "
	         "time without faults. Reads the series of gpuscale-exporter from a Prometheus. With --replay: run the "
	         "planner as a filter; read one observation per line (an event, telemetry, the state of a node, or a tick), "
	         "and write the actions that follow, one per line, both JSON. Every action counts as carried out."
	         "\vFormats, rules and limits: docs/remediation.md. An invalid line is answered with {\"error\": \"...\"} and "
	         "changes nothing.\n\nExit status: 0 stopped, or every line was valid; 1 if not; 2 for wrong usage.",
	.surplus = "; the file is named by --replay",
	.check = check,
	.is_service = true,
	.flags = (const struct flag[]){
		FLAG_TEXT(0, 0, "replay", "FILE", replay, "run the planner on this recording of an incident, one JSON object per line; - for standard input. Changes no cluster"),
		FLAG_SWITCH(0, 0, "act", agent.acts, "change nodes and evict pods (default: a dry run, which only reports)"),
		FLAG_DURATION(0, 0, "interval", agent.interval_ms, INTERVAL_MIN_MS, 0, "time between two readings, 1s to 1m (default 15s)"),
		FLAG_TEXT(0, 0, "node-label", "NAME", agent.node_label, "label of the series of the exporter that has the name of the node (default Hostname)"),
		FLAG_TEXT(0, 0, "listen", "ADDR", agent.listen, "address of /metrics, /livez, /readyz (default :8080, '' = none)"),
		FLAG_I32(0, 0, "max-unavailable", "N", agent.limits.max_nodes, 0, REMEDY_NODES_MAX, "most nodes out of service at the same time, including those that are cordoned or not ready (default 5)"),
		FLAG_I32(0, 0, "max-unavailable-percent", "P", agent.limits.max_percent, 0, 100, "the same limit in percent of all nodes; the smaller one applies (default 10)"),
		FLAG_I32(0, 0, "attempts", "N", agent.limits.attempts, 1, REMEDY_ATTEMPTS_MAX, "how often a node may be taken out of service within 24 hours (default 3)"),
		FLAG_DURATION(0, 0, "clean", agent.limits.clean_ms, 0, 0, "time without a fault before a GPU returns to service; doubles with each attempt of the day (default 30m)"),
		FLAG_LIST(0, 0, "evict-in", "NAMESPACE", namespaces, n_namespaces, NAMESPACES_MAX, "", "also evict pods of this namespace although it is kube-system or the agent's own (repeatable)"),
		FLAG_SWITCH(0, 0, "cordon", agent.cordons, "cordon nodes instead of tainting them"),
		FLAG_SWITCH(0, 0, "device-taints", agent.taints_devices, "taint single GPUs with DeviceTaintRules where dynamic resource allocation serves them"),
		FLAG_SWITCH(0, 0, "drain", agent.limits.drains, "evict every pod with GPUs from a node that is out of service (default: the pods on the failing GPU)"),
		FLAG_SWITCH(0, 0, "reset", agent.limits.can_reset, "request resets of failing GPUs that no pod uses from the reset hook of the node"),
		FLAG_DURATION(0, 0, "heat", agent.heat_ms, HEAT_MIN_MS, 0, "also move work from a GPU whose hardware has slowed down for heat for this long, 1m to 6h (default: never)"),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_INCLUDE(&kube_flags, kube, 0),
		FLAG_INCLUDE(&log_flags, log, 0),
		FLAG_INCLUDE(&ha_flags, ha, 0),
		FLAG_INCLUDE(&series_flags, series, 0),
		FLAG_END}};
// clang-format on

static int replay(struct remediate_args *args)
{
	struct remedy_replay *replay = remedy_replay_new(&args->agent.limits);
	if (!replay) {
		print_error(COMMAND ": out of memory\n");
		return EXIT_FAILED;
	}
	struct line_filter filter = {COMMAND, REMEDY_LINE_BYTES_MAX, replay, remedy_replay_answer, NULL, args->replay};
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
	struct log *log = log_new(STDERR_FILENO, args->log.format, args->log.is_verbose ? LOG_DEBUG : LOG_INFO, &clock);
	if (!log) {
		print_error(COMMAND ": out of memory\n");
		return EXIT_FAILED;
	}
	int code = EXIT_FAILED;
	if (connections_open(&connections, &args->prometheus, &args->kube, &args->ha, NULL, &e) < 0) {
		log_free(log);
		return command_failed(COMMAND, &e);
	}
	args->agent.connections = &connections;
	args->agent.election = connections.elects ? &args->ha : NULL;
	args->agent.matchers = series_options_matchers(&args->series);
	args->agent.namespaces = args->namespaces;
	args->agent.log = log;
	struct remedy_agent *agent = remedy_agent_new(&args->agent, &e);
	if (agent) {
		remedy_agent_run(agent);
		code = EXIT_OK;
	} else {
		print_error(COMMAND ": %s\n", e.msg);
	}
	remedy_agent_disconnect(agent);
	connections_cancel(&connections);
	remedy_agent_free(agent);
	connections_close(&connections);
	log_free(log);
	return code;
}

int cmd_remediate(int argc, char **argv)
{
	struct remediate_args args = {
	        .agent = {.limits = {.max_nodes = 5, .max_percent = 10, .attempts = 3, .clean_ms = INT64_C(1800000)},
	                  .listen = ":8080",
	                  .node_label = "Hostname",
	                  .interval_ms = 15000}};
	prometheus_options_init(&args.prometheus);
	ha_options_init(&args.ha);
	args.ha.lease_name = "gpuscale-remediate";
	args_parse(&command, argc, argv, &args);
	return args.replay ? replay(&args) : run(&args);
}
