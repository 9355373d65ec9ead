// SPDX-License-Identifier: Apache-2.0
#include "exporter/cmd/exporter_options.h"

#include <argp.h>

#include "base/base.h"
#include "base/http/service_account.h"
#include "base/print.h"
#include "exporter/health_policy.h"

#define AT_MAX_MS   (24 * HOUR_MS)
#define EXIT_USAGE  2
#define WATCH_MS    1000 // of --watch without an interval
#define LEVEL_DEBUG 4    // -v from which debug messages are logged
#define FLAG_KEY    256  // argp key of a flag without a letter: FLAG_KEY + its index
#define CHOICES_MAX 5
#define NAMES_BYTES 128
#define HELP_BYTES  512
#define HOUR_MS     (3600LL * 1000)

static const char *const command_names[] = {
        [COMMAND_SERVE] = "serve", [COMMAND_CHECK] = "check", [COMMAND_TOP] = "top", [COMMAND_LIST] = "list"};
_Static_assert(sizeof command_names / sizeof command_names[0] == COMMAND__COUNT, "one name per command");

// A flag of the command line: argp's part of it, and how its argument is stored.
struct flag {
	const char *name;
	int letter; // 0: none
	const char *arg;
	int argp_flags, group;
	const char *help;
	// Stores `arg` (NULL if the flag has none) in `to`, the member of struct exporter_options at `offset`. On
	// failure returns -1 and fills `e` with what is wrong with the argument.
	int (*parse)(const struct flag *f, char *arg, void *to, struct err *e);
	size_t offset;
	int64_t min, max;
	const char *variable;             // of dcgm-exporter's environment; NULL: none
	const char *choices[CHOICES_MAX]; // in the order of the enum that `to` is, where it is one
};

static int parse_duration(const struct flag *f, char *arg, void *to, struct err *e)
{
	int64_t ms;
	if (num_parse_flag_duration_ms(arg, strlen(arg), &ms, e) < 0)
		return -1;
	if (ms < f->min || ms > f->max) {
		char min[NUM_TEXT_BYTES], max[NUM_TEXT_BYTES];
		num_format_duration_ms(min, f->min);
		num_format_duration_ms(max, f->max);
		return err_set(e, ERR_INPUT, "%s is not within %s .. %s", arg, min, max);
	}
	*(int64_t *)to = ms;
	return 0;
}

// The interval of --watch may be left out.
static int parse_watch(const struct flag *f, char *arg, void *to, struct err *e)
{
	*(int64_t *)to = WATCH_MS;
	return arg ? parse_duration(f, arg, to, e) : 0;
}

static int parse_count(const struct flag *f, char *arg, void *to, struct err *e)
{
	return num_parse_i64(arg, strlen(arg), f->min, f->max, to, e);
}

static int parse_log_level(const struct flag *f, char *arg, void *to, struct err *e)
{
	int64_t level;
	if (num_parse_i64(arg, strlen(arg), f->min, f->max, &level, e) < 0)
		return -1;
	*(enum log_level *)to = level >= LEVEL_DEBUG ? LOG_DEBUG : LOG_INFO;
	return 0;
}

// The index of `arg` in the choices of `f`, or -1 and *e.
static int find_choice(const struct flag *f, const char *arg, struct err *e)
{
	struct buf names;
	int n = 0;
	for (; n < CHOICES_MAX && f->choices[n]; n++)
		if (strcmp(f->choices[n], arg) == 0)
			return n;
	buf_init(&names, NAMES_BYTES);
	for (int i = 0; i < n; i++)
		print_to(&names, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", f->choices[i]);
	err_set(e, ERR_INPUT, "must be %s, not \"%s\"", buf_str(&names), arg);
	buf_done(&names);
	return -1;
}

// Any text, unless there are choices.
static int parse_text(const struct flag *f, char *arg, void *to, struct err *e)
{
	if (f->choices[0] && find_choice(f, arg, e) < 0)
		return -1;
	*(const char **)to = arg;
	return 0;
}

// The index, into an enum, which is compatible with unsigned.
static int parse_choice(const struct flag *f, char *arg, void *to, struct err *e)
{
	int index = find_choice(f, arg, e);
	if (index >= 0)
		*(unsigned *)to = (unsigned)index;
	return index < 0 ? -1 : 0;
}

static int parse_action(const struct flag *f, char *arg, void *to, struct err *e)
{
	enum health_action action = health_action_find(arg);
	if (action == HEALTH_ACTION__COUNT || action == HEALTH_IGNORE)
		return err_set(e, ERR_INPUT, "no action \"%s\"", arg);
	*(int *)to = (int)action;
	return 0;
}

static int parse_backend(const struct flag *f, char *arg, void *to, struct err *e)
{
	const struct backend_row *row = backend_registry_find(arg);
	if (!row) {
		struct buf names;
		buf_init(&names, NAMES_BYTES);
		backend_registry_put_names(&names, ", ", " or ");
		err_set(e, ERR_INPUT, "no backend \"%s\": use %s", arg, buf_str(&names));
		buf_done(&names);
		return -1;
	}
	*(const struct backend_row **)to = row;
	return 0;
}

// Accepts "-k", "-k=true" and "--kubernetes=true", as dcgm-exporter does.
static int parse_bool(const struct flag *f, char *arg, void *to, struct err *e)
{
	static const char *const yes[] = {"true", "True", "TRUE", "t", "T", "1"};
	static const char *const no[] = {"false", "False", "FALSE", "f", "F", "0"};
	const char *text = arg && arg[0] == '=' ? arg + 1 : arg;
	*(bool *)to = true;
	for (size_t i = 0; text && i < sizeof yes / sizeof yes[0]; i++) {
		*(bool *)to = strcmp(text, yes[i]) == 0;
		if (*(bool *)to || strcmp(text, no[i]) == 0)
			return 0;
	}
	return text ? err_set(e, ERR_INPUT, "must be true or false, not \"%s\"", arg) : 0;
}

static int parse_names(const struct flag *f, char *arg, void *to, struct err *e)
{
	struct pod_resource_names *names = to;
	names->n = 0;
	for (char *name; (name = pod_labels_next(&arg));) {
		if (names->n == POD_RESOURCE_NAMES_MAX)
			return err_set(e, ERR_LIMIT, "more than %d names", POD_RESOURCE_NAMES_MAX);
		names->names[names->n++] = name;
	}
	return 0;
}

static int parse_pod_labels(const struct flag *f, char *arg, void *to, struct err *e)
{
	return pod_labels_parse(to, arg, e);
}

#define TO(member) offsetof(struct exporter_options, member)
// Rows in the order of argp's groups; argp sorts the flags of a group by name. The argument and the help text of
// --backend come from the registry.
#define SERVE 0
#define READ  1
#define FLAG(group, letter, name, arg, parse, member, help)                                                            \
	FLAG_WITH(group, letter, name, arg, parse, member, help, .min = 0)
#define FLAG_WITH(group_, letter_, name_, arg_, parse_, member, help_, ...)                                            \
	{                                                                                                              \
		.name = name_, .letter = letter_, .arg = arg_, .group = group_, .help = help_, .parse = parse_,        \
		.offset = TO(member), __VA_ARGS__                                                                      \
	}
// clang-format off
static const struct flag flags[] = {
	FLAG(     SERVE, 0,   "backend",                      NULL,                parse_backend,    backend,          NULL),
	FLAG(     SERVE, 0,   "mock-script",                  "FILE",              parse_text,       config.mock_script, "Script that the mock backend plays (default: a built-in script)"),
	FLAG_WITH(SERVE, 0,   "listen",                       "ADDR",              parse_text,       server.listen, "Address to serve on (default :9400)", .variable = "DCGM_EXPORTER_LISTEN"),
	FLAG_WITH(SERVE, 'a', "address",                      NULL,                parse_text,       server.listen, NULL, .argp_flags = OPTION_ALIAS),
	FLAG_WITH(SERVE, 'f', "collectors",                   "FILE",              parse_text,       collectors,       "Counters file of dcgm-exporter that selects the families to serve (default: all families)", .variable = "DCGM_EXPORTER_COLLECTORS"),
	FLAG(     SERVE, 0,   "allowed-hosts",                "NAME,..",           parse_text,       server.allowed_hosts, "Host names that requests may use, besides IP addresses, localhost and this machine's name; *.example.com matches every name below example.com"),
	FLAG_WITH(SERVE, 0,   "web-config-file",              "FILE",              parse_text,       server.web_config, "Prometheus web configuration file with TLS and basic auth", .variable = "DCGM_EXPORTER_WEB_CONFIG_FILE"),
	FLAG_WITH(SERVE, 'k', "kubernetes",                   "true|false",        parse_bool,       kubernetes,       "Label GPUs with the pods that hold them (default false)", .argp_flags = OPTION_ARG_OPTIONAL, .variable = "DCGM_EXPORTER_KUBERNETES"),
	FLAG(     SERVE, 0,   "pod-resources-kubelet-socket", "PATH",              parse_text,       pods.socket, "Pod-resources socket of the kubelet (default " KUBELET_PODS_SOCKET ")"),
	FLAG_WITH(SERVE, 0,   "pod-resources-interval",       "DURATION",          parse_duration,   pods.interval_ms, "Time between two requests for pods, 1s to 5m (default 10s)", .min = 1000, .max = KUBELET_PODS_STALE_MS),
	FLAG_WITH(SERVE, 0,   "pod-uid",                      "true|false",        parse_bool,       page.pod_uid, "With --kubernetes: label GPUs with the UIDs of their pods, from the API server (default false)", .argp_flags = OPTION_ARG_OPTIONAL, .variable = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"),
	FLAG(     SERVE, 0,   "pod-labels",                   "KEY,..",            parse_pod_labels, pod_labels,       "With --kubernetes: label GPUs with these labels of their pods, at most 8, from the API server, as label_KEY"),
	FLAG(     SERVE, 0,   "service-account-dir",          "DIR",               parse_text,       metadata.folder, "Folder of the files token and ca.crt for the API server (default " SERVICE_ACCOUNT_FOLDER ")"),
	FLAG_WITH(SERVE, 0,   "nvidia-resource-names",        "NAME,..",           parse_names,      pods.map.extra, "Additional resource names, or names of DRA drivers, whose devices are GPUs", .variable = "NVIDIA_RESOURCE_NAMES"),
	FLAG(     SERVE, 0,   "admin-access-namespaces",      "NAME,..",           parse_names,      pods.map.admin_namespaces, "Namespaces whose resource claims have administrative access: their pods do not label GPUs"),
	FLAG_WITH(SERVE, 0,   "hpc-job-mapping-dir",          "DIR",               parse_text,       jobs_dir,         "Folder of files named by GPU index, or GPU.INSTANCE, whose lines are the ids of the jobs on the GPU, for the label hpc_job", .variable = "DCGM_HPC_JOB_MAPPING_DIR"),
	FLAG(     SERVE, 0,   "gpu-count-file",               "FILE",              parse_text,       sampler.count_file, "Keep the highest number of GPUs in this file, to notice GPUs that disappear between two starts; check compares with it"),
	FLAG(     SERVE, 0,   "otlp-endpoint",                "URL",               parse_text,       otlp.endpoint, "Push the metrics with OTLP/HTTP to this URL, which gets /v1/metrics appended unless it ends with it (default: nothing is pushed)"),
	FLAG_WITH(SERVE, 0,   "otlp-interval",                "DURATION",          parse_duration,   otlp.interval_ms, "Time between two pushes, 1s to 10m (default 15s)", .min = OTLP_INTERVAL_MIN_MS, .max = OTLP_INTERVAL_MAX_MS),
	FLAG(     SERVE, 0,   "sidecar-pod",                  "NAME",              parse_text,       sidecar_of.pod,   "Run as a sidecar of this pod: label every GPU with it"),
	FLAG(     SERVE, 0,   "sidecar-namespace",            "NAME",              parse_text,       sidecar_of.namespace_, "Namespace of the pod of --sidecar-pod"),
	FLAG(     SERVE, 0,   "sidecar-container",            "NAME",              parse_text,       sidecar_of.container, "Container of the pod of --sidecar-pod that uses the GPUs"),
	FLAG_WITH(SERVE, 0,   "interval",                     "DURATION",          parse_duration,   sampler.interval_ms, "Time between two samples, 100ms to 10s (default 1s)", .min = SAMPLER_INTERVAL_MIN_MS, .max = SAMPLER_INTERVAL_MAX_MS),
	FLAG_WITH(SERVE, 0,   "window",                       "DURATION",          parse_duration,   sampler.window_ms, "Length of the window of the _window_min, _max and _avg families, up to 600 intervals; 0s disables them (default 15s)", .min = 0, .max = SAMPLER_WINDOW_MAX_MS),
	FLAG(     SERVE, 0,   "once",                         NULL,                parse_bool,       once,             "Print one sample on standard output and exit"),
	FLAG_WITH(SERVE, 0,   "at",                           "DURATION",          parse_duration,   at_ms,            "With --once and the mock backend: play up to this time first, without waiting", .min = 0, .max = AT_MAX_MS),
	FLAG_WITH(SERVE, 0,   "names",                        "NAMING",            parse_choice,     page.names, "Names of the GPU families: legacy (dcgm-exporter up to 4.8), 4.9 (dcgm-exporter 4.9, base units) or otel (OpenTelemetry hw.*, else as 4.9); default legacy", .choices = {"legacy", "4.9", "otel"}),
	FLAG_WITH(SERVE, 0,   "hostname-label",               "Hostname|hostname", parse_text,       page.hostname_label, "Name of the host label; dcgm-exporter writes hostname since 4.8.3 (default Hostname, or hostname with --names 4.9 and otel)", .choices = {"Hostname", "hostname"}),
	FLAG(     SERVE, 0,   "nvml-library",                 "PATH",              parse_text,       config.nvml_library, "NVML library to load (default libnvidia-ml.so.1)"),
	FLAG(     SERVE, 0,   "dcgm-hostengine",              "ADDR",              parse_text,       config.dcgm_address, "Address of nv-hostengine for the dcgm backend: host[:port] or unix:///path (default localhost:5555)"),
	FLAG(     SERVE, 0,   "dcgm-library",                 "PATH",              parse_text,       config.dcgm_library, "DCGM library to load (default libdcgm.so.4, else libdcgm.so.3)"),
	FLAG(     SERVE, 0,   "processes",                    NULL,                parse_bool,       processes,        "Export GPU memory per process (NVML only); top: list the processes, with the pods of their GPU"),
	FLAG(     SERVE, 0,   "sysfs-root",                   "DIR",               parse_text,       config.sysfs_root, "Mount point of sysfs for the amdgpu and intel backends (default /sys)"),
	FLAG_WITH(SERVE, 0,   "logging-format",               "text|json",         parse_choice,     log_format,       "Log format (default text)", .choices = {"text", "json"}),
	FLAG_WITH(SERVE, 'v', NULL,                           "LEVEL",             parse_log_level,  log_level,        "Log verbosity, 0 to 9; 4 and above enables debug messages (default 0)", .min = 0, .max = 9),
	{.group = READ, .help = "Flags of check, top and list:"},
	FLAG(     READ,  0,   "from",                         "URL|FILE|-",        parse_text,       from,             "Where to read metrics (default: the exporter running on this node, else the driver; with --backend: the driver)"),
	FLAG(     READ,  0,   "ca-file",                      "FILE",              parse_text,       ca_file,          "CA certificates for an https URL in --from or --otlp-endpoint (default: those of the system)"),
	FLAG_WITH(READ,  'o', "output",                       "FORMAT",            parse_choice,     output,           "table, wide, json, jsonl or csv (default table); list does not support wide, check only table and json", .choices = {"table", "wide", "json", "jsonl", "csv"}),
	FLAG_WITH(READ,  'w', "watch",                        "DURATION",          parse_watch,      watch_ms,         "top: print again at this interval (default 1s)", .argp_flags = OPTION_ARG_OPTIONAL, .min = 100, .max = HOUR_MS),
	FLAG_WITH(READ,  0,   "count",                        "N",                 parse_count,      count,            "top -w: exit after this many tables", .min = 1, .max = 1000000000),
	FLAG_WITH(READ,  0,   "since",                        "DURATION",          parse_duration,   since_ms,         "serve, check: ignore XIDs older than this when judging the health of a GPU (default 1h)", .min = 1000, .max = 365 * 24 * HOUR_MS),
	FLAG(     READ,  0,   "fail-on",                      "ACTION",            parse_action,     fail_on,          "check: mildest action that counts as a problem: watch, restart-app, reset-idle, drain (default), drain-reset, drain-reboot, replace"),
	FLAG(     READ,  0,   "xid-policy",                   "FILE",              parse_text,       xid_policy,       "serve, check: file with rows that override the built-in XID table"),
	FLAG(     SERVE, 0,   "version",                      NULL,                parse_bool,       version,          "Print the version and exit"),
};
// clang-format on
#define FLAGS (sizeof flags / sizeof flags[0])

// Reads dcgm-exporter's environment variables. An empty one is ignored, as in a manifest whose value is left
// out.
static void read_environment(struct exporter_options *o)
{
	struct err e;
	for (size_t i = 0; i < FLAGS; i++) {
		char *value = flags[i].variable ? getenv(flags[i].variable) : NULL;
		if (value && value[0] && flags[i].parse(&flags[i], value, (char *)o + flags[i].offset, &e) < 0) {
			print_error("gpuscale-exporter: %s: %s\n", flags[i].variable, e.msg);
			exit(EXIT_USAGE);
		}
	}
}

// Completes the options, and rejects flags that do not apply to the command or exclude each other.
static void check(struct exporter_options *o, struct argp_state *state)
{
	bool serve = o->command == COMMAND_SERVE, checks = o->command == COMMAND_CHECK;
	o->backend_given = o->backend != NULL;
	if (!o->backend)
		o->backend = backend_registry_find("auto");
	// clang-format off
	const struct {
		bool is_wrong;
		const char *message;
	} rules[] = {
		{!o->sidecar_of.pod && (o->sidecar_of.namespace_ || o->sidecar_of.container), "--sidecar-namespace and --sidecar-container need --sidecar-pod"},
		{o->sidecar_of.pod && o->kubernetes, "--sidecar-pod and --kubernetes exclude each other"},
		{(o->page.pod_uid || o->pod_labels.n) && !o->kubernetes, "--pod-uid and --pod-labels need --kubernetes"},
		{o->config.mock_script && !o->backend->scripted, "--mock-script needs --backend mock"},
		{o->at_ms && (!o->once || !o->backend->scripted), "--at needs --once and --backend mock"},
		{serve && (o->from || (o->ca_file && !o->otlp.endpoint) || o->output != OUTPUT_TABLE), "--from, --ca-file and --output are flags of check, top and list"},
		{o->otlp.endpoint && (!serve || o->once), "--otlp-endpoint is a flag of serve, and not with --once"},
		{!checks && o->fail_on != HEALTH_PROBLEM, "--fail-on is a flag of check"},
		{!checks && !serve && (o->xid_policy || o->since_ms != HEALTH_SINCE_MS), "--xid-policy and --since are flags of serve and check"},
		{o->watch_ms && o->command != COMMAND_TOP, "--watch is a flag of top"},
		{o->count && !o->watch_ms, "--count needs --watch"},
		{checks && o->output != OUTPUT_TABLE && o->output != OUTPUT_JSON, "--output: check has table and json"},
		{o->command == COMMAND_LIST && o->output == OUTPUT_WIDE, "--output: wide is a format of top"},
		{!serve && o->processes && (o->command != COMMAND_TOP || o->output == OUTPUT_CSV), "--processes is a flag of serve and top, which has no processes in csv"},
		{!serve && o->once, "--once is a flag of serve"},
		{o->from && o->backend_given, "--from and --backend exclude each other"},
		{o->from && strcmp(o->from, "-") == 0 && o->watch_ms, "--watch cannot read standard input again"},
	};
	// clang-format on
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		if (rules[i].is_wrong)
			print_usage(state, "%s", rules[i].message);
	o->sidecar_of.namespace_ = o->sidecar_of.namespace_ ? o->sidecar_of.namespace_ : "";
	o->sidecar_of.container = o->sidecar_of.container ? o->sidecar_of.container : "";
}

static const struct flag *flag_of(int key)
{
	for (size_t i = 0; i < FLAGS; i++)
		if (key == (flags[i].letter ? flags[i].letter : FLAG_KEY + (int)i))
			return &flags[i];
	return NULL;
}

static error_t on_flag(int key, char *arg, struct argp_state *state)
{
	struct exporter_options *o = state->input;
	if (key == ARGP_KEY_ARG) {
		int index = 0;
		while (index < COMMAND__COUNT && strcmp(command_names[index], arg) != 0)
			index++;
		if (index == COMMAND__COUNT || state->arg_num > 0)
			print_usage(state, "unexpected argument \"%s\"%s", arg,
			            state->arg_num > 0 ? "" : ": the commands are serve, check, top and list");
		o->command = (enum exporter_command)index;
	} else if (key == ARGP_KEY_END) {
		check(o, state);
	} else {
		const struct flag *f = flag_of(key);
		struct err e;
		if (!f)
			return ARGP_ERR_UNKNOWN;
		if (f->parse(f, arg, (char *)o + f->offset, &e) < 0)
			print_usage(state, f->name ? "--%s: %s" : "-%s: %s",
			            f->name ? f->name : (char[]){(char)f->letter, 0}, e.msg);
	}
	return 0;
}

// getopt would print a flag that it does not know as it is.
static void check_flags(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *p = argv[i];
		while (argv[i][0] == '-' && *p >= ' ' && *p <= '~' && *p != '=')
			p++;
		if (argv[i][0] == '-' && *p && *p != '=') {
			print_error("gpuscale-exporter: unrecognized option '%s'\n", argv[i]);
			exit(EXIT_USAGE);
		}
	}
}

void exporter_options_parse(struct exporter_options *o, int argc, char **argv)
{
	struct argp_option options[FLAGS + 1] = {{0}};
	struct buf backends, backend_help;
	buf_init(&backends, NAMES_BYTES);
	buf_init(&backend_help, HELP_BYTES);
	backend_registry_put_names(&backends, "|", "|");
	buf_puts(&backend_help, "Source of the readings (default auto). ");
	backend_registry_put_help(&backend_help);
	for (size_t i = 0; i < FLAGS; i++) {
		const struct flag *f = &flags[i];
		bool is_backend = f->parse == parse_backend, is_heading = !f->parse;
		options[i] = (struct argp_option){
		        .name = f->name,
		        .key = f->letter || is_heading ? f->letter : FLAG_KEY + (int)i,
		        .arg = is_backend ? buf_str(&backends) : f->arg,
		        .flags = f->argp_flags,
		        .doc = is_backend ? buf_str(&backend_help) : f->help,
		        .group = f->group,
		};
	}
	const struct argp argp = {
	        .options = options,
	        .parser = on_flag,
	        .args_doc = "[serve|check|top|list]",
	        .doc = "Serves the state of this node's GPUs to Prometheus, with the metric names, labels and units of "
	               "dcgm-exporter.\vserve (the default) answers scrapes; check reports whether the GPUs are "
	               "healthy "
	               "and exits with 0, 1 or 2, as node-problem-detector expects; top shows their load; list shows "
	               "their names.",
	};
	*o = (struct exporter_options){
	        .fail_on = HEALTH_PROBLEM,
	        .since_ms = HEALTH_SINCE_MS,
	        .config = {.nvml_library = "libnvidia-ml.so.1", .sysfs_root = "/sys", .dcgm_address = "localhost:5555"},
	        .sampler = {.interval_ms = 1000, .window_ms = SAMPLER_WINDOW_MS},
	        .server = {.listen = ":9400"},
	        .otlp = {.interval_ms = OTLP_INTERVAL_MS},
	        .pods = {.socket = KUBELET_PODS_SOCKET, .interval_ms = KUBELET_PODS_INTERVAL_MS},
	        .metadata = {.folder = SERVICE_ACCOUNT_FOLDER},
	        .sidecar_of = {.replica = -1},
	        .log_level = LOG_INFO};
	check_flags(argc, argv);
	read_environment(o);
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, o);
	if (!o->page.hostname_label)
		o->page.hostname_label = o->page.names == NAMING_LEGACY ? "Hostname" : "hostname";
	buf_done(&backends);
	buf_done(&backend_help);
}
