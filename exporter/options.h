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

struct exporter_options {
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
