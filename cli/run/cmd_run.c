// SPDX-License-Identifier: Apache-2.0
// gpuscale run
#include "base/process/process.h"
#include "cli/term/cli.h"
#include "controller/controller.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/serve/endpoints.h"
#include "runtime/metrics/metrics.h"
#include "runtime/options/serve_options.h"

struct run_args {
	struct prometheus_options prometheus;
	struct kube_options kube;
	struct log_options log;
	struct ha_options ha;
	struct path_options policies;
	struct serve_options serve;
	struct controller_options controller; // without what cmd_run() opens
	const char *listen;
};

static void check(void *options, struct argp_state *state)
{
	struct run_args *a = options;
	if (a->controller.state_dir && a->policies.n == 0)
		print_usage(state,
		            "--state-dir needs --policies: objects of the cluster keep their state in their status");
	if (a->controller.state_dir && !a->controller.state_dir[0])
		print_usage(state, "--state-dir: expected the path of a folder, got \"\"");
	a->controller.policies_from_cluster = a->controller.policies_from_cluster || a->policies.n == 0;
	if (a->controller.scaled_objects && a->controller.once)
		print_usage(state,
		            "--scaled-objects cannot be used with --once: whether KEDA's operator runs takes time");
	if (a->controller.authenticates_triggers && !a->controller.scaled_objects)
		print_usage(state, "--scaled-object-authentication is for --scaled-objects");
	if (!k8s_name_is_valid(a->controller.keda_namespace))
		print_usage(state, "--keda-namespace: \"%s\" is not a valid namespace name",
		            a->controller.keda_namespace);
	if (a->controller.policy_namespace && !k8s_name_is_valid(a->controller.policy_namespace))
		print_usage(state, "-n: \"%s\" is not a valid namespace name", a->controller.policy_namespace);
}

// clang-format off
#define FLAGS_OF struct run_args
static const struct flag_set command = {
	.args = "",
	.about = "Run the controller: query, decide, and PATCH the targets' scale, policy by policy."
	         "\vChanged policy files are reloaded once they stop changing, or immediately on SIGHUP. SIGTERM shuts down "
	         "cleanly. Logs go to stderr. Exit status: 0 stopped or all ticks good, 1 failed, 2 wrong usage.",
	.surplus = "; policies are named by --policies",
	.check = check,
	.is_service = true,
	.flags = (const struct flag[]){
		FLAG_CALL(1, 0, "policies", "DIR|FILE", policies, path_options_add, "policy file, or folder of them; re-read when they change (repeatable). Without it: the GPUAutoscaler objects of the cluster, of all namespaces or that of -n"),
		FLAG_SWITCH(1, 0, "crd", controller.policies_from_cluster, "also read GPUAutoscaler objects from the cluster; an object overrides a file with the same name"),
		FLAG_TEXT(1, 0, "state-dir", "DIR", controller.state_dir, "remember the policies of --policies across restarts in files of this folder: cooldowns, recommendations, scale events, start-up times (default: not; objects have their status)"),
		FLAG_SWITCH(1, 0, "cluster-fleets", controller.cluster_fleets, "let policies of every namespace scale targets of other namespaces (spec.scaleTargets.namespaceSelector), not only those of the namespace of this process"),
		FLAG_SWITCH(1, 0, "scaled-objects", controller.scaled_objects, "also the ScaledObjects of KEDA, in place of its operator: nothing is done while that runs"),
		FLAG_SWITCH(1, 0, "scaled-object-authentication", controller.authenticates_triggers, "with --scaled-objects: query with the credentials of TriggerAuthentications, from the Secrets that they name"),
		FLAG_TEXT(1, 0, "keda-namespace", "NAME", controller.keda_namespace, "namespace of KEDA's operator, for --scaled-objects (default keda)"),
		FLAG_TEXT(1, 0, "prices", "FILE", controller.prices, "a PriceBook for the costs of policies with spec.gpus; re-read when it changes (default: the shipped prices)"),
		FLAG_TEXT(1, 'n', "namespace", "NAME", controller.policy_namespace, "only the objects of this namespace (default: of all)"),
		FLAG_TEXT(1, 0, "listen", "ADDR", listen, "address of the status page (/), /metrics, /livez, /readyz, /debug/decisions (default :8080, '' = none)"),
		FLAG_SWITCH(1, 0, "dry-run", controller.dry_run, "decide and report, write nothing"),
		FLAG_SWITCH(1, 0, "once", controller.once, "one tick per policy, then exit"),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_INCLUDE(&kube_flags, kube, 0),
		FLAG_INCLUDE(&log_flags, log, 0),
		FLAG_INCLUDE(&ha_flags, ha, 0),
		FLAG_INCLUDE(&serve_flags, serve, 0),
		FLAG_END}};
// clang-format on

// A process that writes nothing needs no lease, and policies from files belong to this process unless a flag says
// otherwise.
static void default_leader_election(struct run_args *a)
{
	if (a->controller.once || a->controller.dry_run ||
	    (!a->controller.policies_from_cluster && !a->controller.scaled_objects && a->ha.n_shards == 1 &&
	     a->ha.leader_elect == HA_DEFAULT))
		a->ha.leader_elect = HA_OFF;
}

int cmd_run(int argc, char **argv)
{
	struct run_args args = {.listen = ":8080", .controller = {.keda_namespace = KEDA_NAMESPACE}};
	prometheus_options_init(&args.prometheus);
	ha_options_init(&args.ha);
	serve_options_init(&args.serve);
	args_parse(&command, argc, argv, &args);

	struct err e;
	struct connections connections;
	struct clock clock;
	clock_init_real(&clock);
	process_return_large_blocks();
	process_raise_descriptors();
	struct log *log = log_new(STDERR_FILENO, args.log.format, args.log.is_verbose ? LOG_DEBUG : LOG_INFO, &clock);
	struct metrics *metrics = metrics_new();
	if (!log || !metrics) {
		print_error("gpuscale run: out of memory\n");
		return EXIT_FAILED;
	}
	int code = EXIT_FAILED;
	metrics->max_policies = args.serve.metrics_policies;
	default_leader_election(&args);
	if (connections_open(&connections, &args.prometheus, &args.kube, &args.ha, metrics, &e) < 0) {
		code = command_failed("gpuscale run", &e);
		goto out;
	}
	args.controller.policy_paths = args.policies.paths;
	args.controller.n_policy_paths = args.policies.n;
	args.controller.keep_sparklines = !args.controller.once && args.listen[0];
	args.controller.election = connections.elects ? &args.ha : NULL;
	args.controller.log = log;
	struct controller *controller = controller_new(&connections, &args.controller, metrics, &e);
	struct http_servers *servers =
	        controller && !args.controller.once ? http_servers_new(controller, &args.serve, args.listen, &e) : NULL;
	if (controller && (servers || args.controller.once))
		code = controller_run(controller) ? EXIT_OK : EXIT_FAILED;
	else
		print_error("gpuscale run: %s\n", e.msg);
	http_servers_disconnect(servers);
	controller_disconnect(controller);
	connections_cancel(&connections);
	controller_resign(controller);
	http_servers_free(servers);
	controller_free(controller);
	connections_close(&connections);
out:
	free(metrics);
	log_free(log);
	return code;
}
