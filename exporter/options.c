// SPDX-License-Identifier: Apache-2.0
#include "exporter/options.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "exporter/health_policy.h"
#include "exporter/pods.h"
#include "exporter/sampler.h"

#define AT_MAX_MS (24 * 3600 * 1000)

enum {
	KEY_BACKEND = 256,
	KEY_MOCK_SCRIPT,
	KEY_LISTEN,
	KEY_INTERVAL,
	KEY_WINDOW,
	KEY_ONCE,
	KEY_AT,
	KEY_HOSTNAME,
	KEY_NVML,
	KEY_SYSFS_ROOT,
	KEY_PROCESSES,
	KEY_DCGM_HOSTENGINE,
	KEY_DCGM_LIBRARY,
	KEY_LOG_FORMAT,
	KEY_WEB_CONFIG,
	KEY_PODS_SOCKET,
	KEY_PODS_INTERVAL,
	KEY_RESOURCE_NAMES,
	KEY_FROM,
	KEY_CA_FILE,
	KEY_XID_POLICY,
	KEY_FAIL_ON,
	KEY_SINCE,
	KEY_COUNT,
	KEY_VERSION
};

static const char *const command_names[] = {
        [COMMAND_SERVE] = "serve", [COMMAND_CHECK] = "check", [COMMAND_TOP] = "top", [COMMAND_LIST] = "list"};
_Static_assert(sizeof command_names / sizeof command_names[0] == COMMAND__COUNT, "one name per command");
static const char *const output_names[] = {[OUTPUT_TABLE] = "table", [OUTPUT_JSON] = "json", [OUTPUT_CSV] = "csv"};
_Static_assert(sizeof output_names / sizeof output_names[0] == OUTPUT__COUNT, "one name per output");

static const char *const kind_names[] = {
        [BACKEND_AUTO] = "auto", [BACKEND_NVML] = "nvml",     [BACKEND_MOCK] = "mock",
        [BACKEND_DCGM] = "dcgm", [BACKEND_AMDGPU] = "amdgpu", [BACKEND_INTEL] = "intel",
};
_Static_assert(sizeof kind_names / sizeof kind_names[0] == BACKEND__COUNT, "one name per backend");

const char *backend_kind_name(enum backend_kind kind)
{
	return kind_names[kind];
}

static const struct argp_option flags[] = {
        {"backend", KEY_BACKEND, "auto|nvml|dcgm|amdgpu|intel|mock", 0, "Where readings come from (default auto)", 0},
        {"mock-script", KEY_MOCK_SCRIPT, "FILE", 0, "What the mock backend plays; without it, a built-in script", 0},
        {"listen", KEY_LISTEN, "ADDR", 0, "Address to serve on (default :9400)", 0},
        {"address", 'a', NULL, OPTION_ALIAS, NULL, 0},
        {"collectors", 'f', "FILE", 0, "Which families to serve: dcgm-exporter's counters file (default all)", 0},
        {"web-config-file", KEY_WEB_CONFIG, "FILE", 0, "TLS and basic auth: Prometheus's web-config file", 0},
        {"kubernetes", 'k', "true|false", OPTION_ARG_OPTIONAL,
         "Label GPUs with the pods that hold them (default false)", 0},
        {"pod-resources-kubelet-socket", KEY_PODS_SOCKET, "PATH", 0, "The kubelet's socket (default " PODS_SOCKET ")",
         0},
        {"pod-resources-interval", KEY_PODS_INTERVAL, "DURATION", 0,
         "Time between questions for pods, 1s to 5m (default 10s)", 0},
        {"nvidia-resource-names", KEY_RESOURCE_NAMES, "NAME,..", 0, "Further resource names whose devices are GPUs", 0},
        {"interval", KEY_INTERVAL, "DURATION", 0, "Time between samples, 100ms to 10s (default 1s)", 0},
        {"window", KEY_WINDOW, "DURATION", 0,
         "Time that the _window_min, _max and _avg families look back, up to 600 intervals; 0s: none of them "
         "(default 15s)",
         0},
        {"once", KEY_ONCE, NULL, 0, "Print one sample on standard output and end", 0},
        {"at", KEY_AT, "DURATION", 0, "With --once and the mock: play up to this time first, without waiting", 0},
        {"hostname-label", KEY_HOSTNAME, "Hostname|hostname", 0,
         "Name of the host label; dcgm-exporter writes hostname from 4.8.3 (default Hostname)", 0},
        {"nvml-library", KEY_NVML, "PATH", 0, "NVML to load (default libnvidia-ml.so.1)", 0},
        {"dcgm-hostengine", KEY_DCGM_HOSTENGINE, "ADDR", 0,
         "nv-hostengine of the dcgm backend: host[:port] or unix:///path (default localhost:5555)", 0},
        {"dcgm-library", KEY_DCGM_LIBRARY, "PATH", 0, "DCGM to load (default libdcgm.so.4, else libdcgm.so.3)", 0},
        {"processes", KEY_PROCESSES, NULL, 0, "Tell the device memory of each process (nvml)", 0},
        {"sysfs-root", KEY_SYSFS_ROOT, "DIR", 0, "Where the amdgpu and intel backends find /sys (default /sys)", 0},
        {"logging-format", KEY_LOG_FORMAT, "text|json", 0, "Format of the log (default text)", 0},
        {NULL, 'v', "LEVEL", 0, "Verbosity of the log, 0 to 9; 4 and more shows debugging (default 0)", 0},
        {NULL, 0, NULL, 0, "Of check, top and list:", 1},
        {"from", KEY_FROM, "URL|FILE|-", 0,
         "Where to read metrics (default: the exporter that serves here, else the driver; --backend: the driver)", 1},
        {"ca-file", KEY_CA_FILE, "FILE", 0, "Certificates to trust when --from is https (default the system's)", 1},
        {"output", 'o', "table|json|csv", 0, "Format (default table); check has no csv", 1},
        {"watch", 'w', "DURATION", OPTION_ARG_OPTIONAL, "top: again and again (default each 1s)", 1},
        {"count", KEY_COUNT, "N", 0, "top -w: end after so many tables", 1},
        {"since", KEY_SINCE, "DURATION", 0, "check: XIDs older than this are history (default 1h)", 1},
        {"fail-on", KEY_FAIL_ON, "ACTION", 0,
         "check: the mildest action that is a problem: watch, restart-app, reset-idle, drain (default), drain-reset, "
         "drain-reboot, replace",
         1},
        {"xid-policy", KEY_XID_POLICY, "FILE", 0, "check: rows over the built-in XID table", 1},
        {"version", KEY_VERSION, NULL, 0, "Print the version and end", 0},
        {0},
};

static void parse_range(struct argp_state *state, const char *flag, const char *arg, int64_t min_ms, int64_t max_ms,
                        int64_t *ret_ms)
{
	struct err e;
	if (num_parse_duration_ms(arg, strlen(arg), ret_ms, &e) < 0) {
		argp_error(state, "--%s: %s", flag, e.msg);
	} else if (*ret_ms < min_ms || *ret_ms > max_ms) {
		char min[NUM_TEXT_BYTES], max[NUM_TEXT_BYTES];
		num_format_duration_ms(min, min_ms);
		num_format_duration_ms(max, max_ms);
		argp_error(state, "--%s: %s is not within %s .. %s", flag, arg, min, max);
	}
}

// "-k", "-k=true" and "--kubernetes=true" are all one to dcgm-exporter.
static int parse_bool(const char *text, bool *ret_value)
{
	static const char *const yes[] = {"true", "True", "TRUE", "t", "T", "1"};
	static const char *const no[] = {"false", "False", "FALSE", "f", "F", "0"};
	*ret_value = !text;
	if (text && text[0] == '=')
		text++;
	for (size_t i = 0; text && i < sizeof yes / sizeof yes[0]; i++) {
		*ret_value = strcmp(text, yes[i]) == 0;
		if (*ret_value || strcmp(text, no[i]) == 0)
			return 0;
	}
	return text ? -1 : 0;
}

// Cuts a list at its commas, in place. Empty names are passed over.
static int parse_names(char *text, struct pod_resource_names *names)
{
	names->n = 0;
	while (text) {
		char *name = text, *comma = strchr(text, ',');
		text = comma ? comma + 1 : NULL;
		if (comma)
			*comma = '\0';
		if (!name[0])
			continue;
		if (names->n == POD_RESOURCE_NAMES_MAX)
			return -1;
		names->names[names->n++] = name;
	}
	return 0;
}

// dcgm-exporter's variables. An empty one counts as none, as in a manifest with a value left out.
static void read_environment(struct exporter_options *o, struct argp_state *state)
{
	char *listen = getenv("DCGM_EXPORTER_LISTEN"), *collectors = getenv("DCGM_EXPORTER_COLLECTORS");
	char *kubernetes = getenv("DCGM_EXPORTER_KUBERNETES"), *names = getenv("NVIDIA_RESOURCE_NAMES");
	char *web_config = getenv("DCGM_EXPORTER_WEB_CONFIG_FILE");
	if (listen && listen[0])
		o->listen = listen;
	if (web_config && web_config[0])
		o->web_config = web_config;
	if (collectors && collectors[0])
		o->collectors = collectors;
	if (kubernetes && kubernetes[0] && parse_bool(kubernetes, &o->kubernetes) < 0)
		argp_error(state, "DCGM_EXPORTER_KUBERNETES: must be true or false, not \"%s\"", kubernetes);
	if (names && parse_names(names, &o->pod_resources) < 0)
		argp_error(state, "NVIDIA_RESOURCE_NAMES: more than %d names", POD_RESOURCE_NAMES_MAX);
}

static int find_name(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

// Flags that the command has no use for.
static void check_command(const struct exporter_options *o, struct argp_state *state)
{
	bool serve = o->command == COMMAND_SERVE, check = o->command == COMMAND_CHECK;
	if (serve && (o->from || o->ca_file || o->output != OUTPUT_TABLE))
		argp_error(state, "--from, --ca-file and --output are flags of check, top and list");
	if (!check && (o->xid_policy || o->fail_on != HEALTH_DRAIN || o->since_ms != HEALTH_SINCE_MS))
		argp_error(state, "--xid-policy, --fail-on and --since are flags of check");
	if (o->watch_ms && o->command != COMMAND_TOP)
		argp_error(state, "--watch is a flag of top");
	if (o->count && !o->watch_ms)
		argp_error(state, "--count needs --watch");
	if (check && o->output == OUTPUT_CSV)
		argp_error(state, "--output: check has table and json");
	if (!serve && o->once)
		argp_error(state, "--once is a flag of serve");
	if (o->from && o->backend_given)
		argp_error(state, "--from and --backend exclude each other");
	if (o->from && strcmp(o->from, "-") == 0 && o->watch_ms)
		argp_error(state, "--watch cannot read standard input again");
}

static error_t on_flag(int key, char *arg, struct argp_state *state)
{
	struct exporter_options *o = state->input;
	struct err e;
	int64_t level;
	int index;
	switch (key) {
	case KEY_FROM:
		o->from = arg;
		break;
	case KEY_CA_FILE:
		o->ca_file = arg;
		break;
	case KEY_XID_POLICY:
		o->xid_policy = arg;
		break;
	case 'o':
		if ((index = find_name(output_names, OUTPUT__COUNT, arg)) < 0)
			argp_error(state, "--output: must be table, json or csv, not \"%s\"", arg);
		o->output = (enum exporter_output)index;
		break;
	case 'w':
		o->watch_ms = 1000;
		if (arg)
			parse_range(state, "watch", arg, 100, 3600 * 1000, &o->watch_ms);
		break;
	case KEY_COUNT:
		if (num_parse_i64(arg, strlen(arg), 1, 1000000000, &o->count, &e) < 0)
			argp_error(state, "--count: %s", e.msg);
		break;
	case KEY_SINCE:
		parse_range(state, "since", arg, 1000, 365LL * 24 * 3600 * 1000, &o->since_ms);
		break;
	case KEY_FAIL_ON:
		o->fail_on = (int)health_action_find(arg);
		if (o->fail_on == (int)HEALTH_ACTION__COUNT || o->fail_on == (int)HEALTH_IGNORE)
			argp_error(state, "--fail-on: no action \"%s\"", arg);
		break;
	case KEY_BACKEND:
		o->backend_given = true;
		for (int k = 0; k < BACKEND__COUNT; k++) {
			if (strcmp(arg, kind_names[k]) == 0) {
				o->backend = (enum backend_kind)k;
				return 0;
			}
		}
		argp_error(state, "--backend: no backend \"%s\": use auto, nvml, dcgm, amdgpu, intel or mock", arg);
		break;
	case KEY_MOCK_SCRIPT:
		o->mock_script = arg;
		break;
	case KEY_LISTEN:
	case 'a': // argp gives a short alias its own key
		o->listen = arg;
		break;
	case 'f':
		o->collectors = arg;
		break;
	case 'k':
		if (parse_bool(arg, &o->kubernetes) < 0)
			argp_error(state, "--kubernetes: must be true or false, not \"%s\"", arg);
		break;
	case KEY_WEB_CONFIG:
		o->web_config = arg;
		break;
	case KEY_PODS_SOCKET:
		o->pods_socket = arg;
		break;
	case KEY_PODS_INTERVAL:
		parse_range(state, "pod-resources-interval", arg, 1000, PODS_STALE_MS, &o->pods_interval_ms);
		break;
	case KEY_RESOURCE_NAMES:
		if (parse_names(arg, &o->pod_resources) < 0)
			argp_error(state, "--nvidia-resource-names: more than %d names", POD_RESOURCE_NAMES_MAX);
		break;
	case KEY_INTERVAL:
		parse_range(state, "interval", arg, SAMPLER_INTERVAL_MIN_MS, SAMPLER_INTERVAL_MAX_MS, &o->interval_ms);
		break;
	case KEY_WINDOW:
		parse_range(state, "window", arg, 0, SAMPLER_WINDOW_MAX_MS, &o->window_ms);
		break;
	case KEY_ONCE:
		o->once = true;
		break;
	case KEY_AT:
		parse_range(state, "at", arg, 0, AT_MAX_MS, &o->at_ms);
		break;
	case KEY_HOSTNAME:
		if (strcmp(arg, "Hostname") != 0 && strcmp(arg, "hostname") != 0)
			argp_error(state, "--hostname-label: must be Hostname or hostname, not \"%s\"", arg);
		o->hostname_label = arg;
		break;
	case KEY_NVML:
		o->nvml_library = arg;
		break;
	case KEY_DCGM_HOSTENGINE:
		o->dcgm_hostengine = arg;
		break;
	case KEY_DCGM_LIBRARY:
		o->dcgm_library = arg;
		break;
	case KEY_PROCESSES:
		o->processes = true;
		break;
	case KEY_SYSFS_ROOT:
		o->sysfs_root = arg;
		break;
	case KEY_LOG_FORMAT:
		if (strcmp(arg, "text") != 0 && strcmp(arg, "json") != 0)
			argp_error(state, "--logging-format: must be text or json, not \"%s\"", arg);
		o->log_format = strcmp(arg, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;
		break;
	case 'v':
		if (num_parse_i64(arg, strlen(arg), 0, 9, &level, &e) < 0)
			argp_error(state, "-v: %s", e.msg);
		else
			o->log_level = level >= 4 ? LOG_DEBUG : LOG_INFO;
		break;
	case KEY_VERSION:
		o->version = true;
		break;
	case ARGP_KEY_ARG:
		index = find_name(command_names, COMMAND__COUNT, arg);
		if (index < 0 || state->arg_num > 0)
			argp_error(state, "unexpected argument \"%s\"%s", arg,
			           state->arg_num > 0 ? "" : ": the commands are serve, check, top and list");
		o->command = (enum exporter_command)index;
		break;
	case ARGP_KEY_INIT:
		read_environment(o, state);
		break;
	case ARGP_KEY_END:
		check_command(o, state);
		if (o->mock_script && o->backend != BACKEND_MOCK)
			argp_error(state, "--mock-script needs --backend mock");
		if (o->at_ms && (!o->once || o->backend != BACKEND_MOCK))
			argp_error(state, "--at needs --once and --backend mock");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void exporter_options_parse(struct exporter_options *o, int argc, char **argv)
{
	static const struct argp argp = {
	        .options = flags,
	        .parser = on_flag,
	        .args_doc = "[serve|check|top|list]",
	        .doc = "Serves the state of this node's GPUs to Prometheus, in the names, labels and units of "
	               "dcgm-exporter.\vserve (the default) answers scrapes; check says whether the GPUs are healthy "
	               "and exits 0, 1 or "
	               "2 as node-problem-detector wants it; top shows their load; list names them.",
	};
	*o = (struct exporter_options){.listen = ":9400",
	                               .fail_on = HEALTH_DRAIN,
	                               .since_ms = HEALTH_SINCE_MS,
	                               .pods_socket = PODS_SOCKET,
	                               .pods_interval_ms = PODS_INTERVAL_MS,
	                               .hostname_label = "Hostname",
	                               .nvml_library = "libnvidia-ml.so.1",
	                               .sysfs_root = "/sys",
	                               .dcgm_hostengine = "localhost:5555",
	                               .interval_ms = 1000,
	                               .window_ms = SAMPLER_WINDOW_MS,
	                               .log_level = LOG_INFO};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, o);
}
