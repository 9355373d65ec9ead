// SPDX-License-Identifier: Apache-2.0
// The command line of the exporter.
#ifndef GPUSCALE_EXPORTER_CMD_EXPORTER_OPTIONS_H
#define GPUSCALE_EXPORTER_CMD_EXPORTER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process/log.h"
#include "exporter/apiserver/pod_metadata.h"
#include "exporter/backend.h"
#include "exporter/kubelet/kubelet_pods.h"
#include "exporter/otlp/otlp_push.h"
#include "exporter/page/exporter_server.h"
#include "exporter/page/render_page.h"
#include "exporter/sampler.h"

enum exporter_command { COMMAND_SERVE, COMMAND_CHECK, COMMAND_TOP, COMMAND_LIST, COMMAND__COUNT };
enum exporter_output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_CSV, OUTPUT__COUNT };

struct exporter_options {
	enum exporter_command command;
	// Of check, top and list.
	const char *from;       // URL, file or "-" to read pages from; NULL: the exporter of this node, else the driver
	const char *ca_file;    // PEM, for an https URL of --from or --otlp-endpoint; NULL: those of the system
	const char *xid_policy; // file as in health_policy.h; NULL: only the built-in table
	enum exporter_output output;
	int fail_on;      // enum health_action from which check exits 1
	int64_t since_ms; // check ignores XIDs older than this
	int64_t watch_ms; // time between two tables; 0: only one
	int64_t count;    // most tables; 0: no limit

	bool backend_given; // --backend was given: the commands read the driver themselves
	const struct backend_row *backend;
	// The parts of the exporter, with the members that are flags.
	struct backend_config config;
	struct sampler_options sampler;
	struct exporter_server_options server; // listen is ":9400" by default
	struct render_page_options page;
	struct otlp_push_options otlp; // endpoint NULL: nothing is pushed
	struct kubelet_pods_options pods;
	struct pod_metadata_options metadata;
	const char *collectors;       // the counters file; NULL: every family
	const char *jobs_dir;         // files that map GPUs to jobs; NULL: none
	struct pod_share sidecar_of;  // the pod of --sidecar-*; without one, `pod` is NULL
	bool kubernetes;              // label GPUs with the pods that hold them
	struct pod_labels pod_labels; // and with these labels of the pods
	int64_t at_ms;                // with `once`: virtual time
	bool processes;               // device memory per process; top: list them
	bool once;
	bool version;
	enum log_format log_format;
	enum log_level log_level;
};

// Reads argv, and for what argv leaves out the environment variables of dcgm-exporter: DCGM_EXPORTER_LISTEN,
// DCGM_EXPORTER_COLLECTORS, DCGM_EXPORTER_KUBERNETES, DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID,
// DCGM_EXPORTER_WEB_CONFIG_FILE, DCGM_HPC_JOB_MAPPING_DIR and NVIDIA_RESOURCE_NAMES. Splits the value of the last one
// in place. On a usage error, --help and --usage the process exits, with status 2, 0 and 0; when the function returns,
// `o` is complete.
void exporter_options_parse(struct exporter_options *o, int argc, char **argv);

// ---- the backends of --backend: one table, from which its help text, its error message and its choice come ----

struct backend_row {
	const char *name; // as on the command line
	const char *help; // where its readings come from
	backend_new_fn *make;
	bool probed;   // `auto` tries it, in the order of the table
	bool scripted; // plays --mock-script in virtual time, so that --at applies
};

// The row called `name`, or NULL.
const struct backend_row *backend_registry_find(const char *name);
// Appends every name to `out`: `separator` stands between two names, `last` before the last one.
void backend_registry_put_names(struct buf *out, const char *separator, const char *last);
// Appends "name: help" of every row to `out`, separated by "; ".
void backend_registry_put_help(struct buf *out);

#endif
