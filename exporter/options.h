// SPDX-License-Identifier: Apache-2.0
// The exporter's command line.
#ifndef GPUSCALE_EXPORTER_OPTIONS_H
#define GPUSCALE_EXPORTER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "exporter/pod_resources.h"

enum backend_kind {
	BACKEND_AUTO,
	BACKEND_NVML,
	BACKEND_MOCK,
	BACKEND_DCGM,
	BACKEND_AMDGPU,
	BACKEND_INTEL,
	BACKEND__COUNT
};

enum exporter_command { COMMAND_SERVE, COMMAND_CHECK, COMMAND_TOP, COMMAND_LIST, COMMAND__COUNT };
enum exporter_output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_CSV, OUTPUT__COUNT };

struct exporter_options {
	enum exporter_command command;
	// Of the commands beside serving.
	const char *from;       // URL, file or "-" to read pages from; NULL: the exporter of this node, else the driver
	const char *ca_file;    // PEM, of a URL with https; NULL: the system's
	const char *xid_policy; // file of exporter/health_policy.h; NULL: the built-in table alone
	enum exporter_output output;
	int fail_on;      // enum health_action from which check exits 1
	int64_t since_ms; // XIDs older than this are history to check
	int64_t watch_ms; // time between two tables; 0: only one
	int64_t count;    // tables at most; 0: without end

	bool backend_given; // --backend was written: the commands read the driver themselves
	enum backend_kind backend;
	const char *mock_script;     // NULL: the built-in one
	const char *listen;          // ":9400"
	const char *web_config;      // NULL: plain HTTP for everybody
	const char *collectors;      // the counters file; NULL: every family
	const char *hostname_label;  // "Hostname" or "hostname"
	const char *nvml_library;    // "libnvidia-ml.so.1"
	const char *sysfs_root;      // "/sys"
	const char *dcgm_hostengine; // "localhost:5555"
	const char *dcgm_library;    // NULL: libdcgm.so.4 or .3
	bool kubernetes;             // ask the kubelet which pods hold the GPUs
	const char *pods_socket;     // the kubelet's
	struct pod_resource_names pod_resources;
	int64_t pods_interval_ms;
	int64_t interval_ms;
	int64_t window_ms; // 0: no windows
	int64_t at_ms;     // with once: virtual time
	bool processes;    // device memory per process
	bool once;
	bool version;
	enum log_format log_format;
	enum log_level log_level;
};

// Name of a backend as on the command line.
const char *backend_kind_name(enum backend_kind kind);

// Reads argv, and dcgm-exporter's environment for what argv does not say: DCGM_EXPORTER_LISTEN,
// DCGM_EXPORTER_COLLECTORS, DCGM_EXPORTER_KUBERNETES, NVIDIA_RESOURCE_NAMES. The text of the latter is cut in place. A
// usage error, --help and --usage end the process with the exit code of the command
// (2, 0, 0), as argp does; every other return is usable.
void exporter_options_parse(struct exporter_options *o, int argc, char **argv);

#endif
