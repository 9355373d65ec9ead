// SPDX-License-Identifier: Apache-2.0
#include "exporter/options.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "exporter/sampler.h"

#define AT_MAX_MS (24 * 3600 * 1000)

enum {
	KEY_BACKEND = 256,
	KEY_MOCK_SCRIPT,
	KEY_LISTEN,
	KEY_INTERVAL,
	KEY_ONCE,
	KEY_AT,
	KEY_HOSTNAME,
	KEY_NVML,
	KEY_LOG_FORMAT,
	KEY_VERSION
};

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
        {"backend", KEY_BACKEND, "auto|nvml|mock", 0, "Where readings come from (default auto)", 0},
        {"mock-script", KEY_MOCK_SCRIPT, "FILE", 0, "What the mock backend plays; without it, a built-in script", 0},
        {"listen", KEY_LISTEN, "ADDR", 0, "Address to serve on (default :9400)", 0},
        {"address", 'a', NULL, OPTION_ALIAS, NULL, 0},
        {"collectors", 'f', "FILE", 0, "Which families to serve: dcgm-exporter's counters file (default all)", 0},
        {"interval", KEY_INTERVAL, "DURATION", 0, "Time between samples, 100ms to 10s (default 1s)", 0},
        {"once", KEY_ONCE, NULL, 0, "Print one sample on standard output and end", 0},
        {"at", KEY_AT, "DURATION", 0, "With --once and the mock: play up to this time first, without waiting", 0},
        {"hostname-label", KEY_HOSTNAME, "Hostname|hostname", 0,
         "Name of the host label; dcgm-exporter writes hostname from 4.8.3 (default Hostname)", 0},
        {"nvml-library", KEY_NVML, "PATH", 0, "NVML to load (default libnvidia-ml.so.1)", 0},
        {"logging-format", KEY_LOG_FORMAT, "text|json", 0, "Format of the log (default text)", 0},
        {NULL, 'v', "LEVEL", 0, "Verbosity of the log, 0 to 9; 4 and more shows debugging (default 0)", 0},
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

static error_t on_flag(int key, char *arg, struct argp_state *state)
{
	struct exporter_options *o = state->input;
	struct err e;
	int64_t level;
	switch (key) {
	case KEY_BACKEND:
		for (int k = 0; k < BACKEND__COUNT; k++) {
			if (strcmp(arg, kind_names[k]) == 0) {
				o->backend = (enum backend_kind)k;
				return 0;
			}
		}
		argp_error(state, "--backend: no backend \"%s\": use auto, nvml or mock", arg);
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
	case KEY_INTERVAL:
		parse_range(state, "interval", arg, SAMPLER_INTERVAL_MIN_MS, SAMPLER_INTERVAL_MAX_MS, &o->interval_ms);
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
		argp_error(state, "unexpected argument \"%s\"", arg);
		break;
	case ARGP_KEY_END:
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

// An empty variable counts as none, as in a manifest with a value left out.
static const char *environment(const char *name, const char *fallback)
{
	const char *value = getenv(name);
	return value && value[0] ? value : fallback;
}

void exporter_options_parse(struct exporter_options *o, int argc, char **argv)
{
	static const struct argp argp = {
	        .options = flags,
	        .parser = on_flag,
	        .doc = "Serves the state of this node's GPUs to Prometheus, in the names, labels and units of "
	               "dcgm-exporter.",
	};
	*o = (struct exporter_options){.listen = environment("DCGM_EXPORTER_LISTEN", ":9400"),
	                               .collectors = environment("DCGM_EXPORTER_COLLECTORS", NULL),
	                               .hostname_label = "Hostname",
	                               .nvml_library = "libnvidia-ml.so.1",
	                               .interval_ms = 1000,
	                               .log_level = LOG_INFO};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, o);
}
