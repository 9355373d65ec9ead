// SPDX-License-Identifier: Apache-2.0
// The mock's script: a YAML file that says which GPUs there are and what happens to them (docs/exporter.md).
#ifndef GPUSCALE_EXPORTER_MOCK_SCRIPT_H
#define GPUSCALE_EXPORTER_MOCK_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/families.h"
#include "exporter/series.h"

struct arena;
struct buf;
struct doc_node;
struct err;
struct schema;

#define MOCK_SCRIPT_BYTES_MAX (32 * 1024 * 1024) // of memory, with its CSV columns

// A MIG instance of each GPU it stands at.
struct mock_instance {
	const char *profile;
	int32_t id;
	const char *namespace_, *pod, *container;
	const struct doc_node *series_node;
	const struct series *series[FIELD__COUNT];
};

struct mock_gpu {
	int32_t count;
	const char *uuid, *model, *pci_bus_id;
	const char *mig_profile, *mig_id;
	const char *namespace_, *pod, *container;
	int32_t memory_mib;
	double power_limit_watts, idle_power_watts;
	const struct doc_node *series_node;
	const struct series *series[FIELD__COUNT]; // NULL: no series for this field
	struct mock_instance *instances;
	size_t n_instances;
};

struct mock_xid {
	int64_t at_ms;
	int32_t gpu, code;
};

struct mock_loss {
	int64_t at_ms, for_ms; // for_ms 0: for ever
	int32_t gpu;
};

struct mock_sine {
	double mean, amplitude;
	int64_t period_ms, phase_ms;
};

struct mock_demand {
	const char *csv, *column;
	const char *series;
	bool has_sine;
	struct mock_sine sine;
	int64_t step_ms;
	double time_scale, scale;
	bool loop;
	int64_t smooth_ms;
};

struct mock_replicas_source {
	const char *url, *field, *token_file, *ca_file; // one of: url,
	const char *file;                               // file,
	bool has_constant;
	int32_t constant; // constant
	int64_t interval_ms;
};

struct mock_workload {
	const char *name, *namespace_;
	struct mock_demand demand;
	double capacity_per_replica;
	struct mock_replicas_source replicas;
	int32_t gpus_per_replica;
	double idle_percent;
	double backlog_max;          // 0: no ceiling
	struct series demand_series; // made from `demand`
};

struct mock_script {
	const char *driver_version;
	int64_t step_ms;
	bool loop;
	struct mock_gpu *gpus;
	size_t n_gpus;
	struct mock_xid *xids;
	size_t n_xids;
	struct mock_loss *losses;
	size_t n_losses;
	bool has_workload;
	struct mock_workload workload;
	int32_t n_boards;  // sum of gpus[].count
	int32_t n_devices; // with the MIG instances
};

// Decodes text[0..len); name is used in messages, base_dir ("" = the current one) is where relative file names in the
// script begin. Everything lives in `a`. -1 and *e; for faults of the script itself ret_errors holds all of them, a
// line each: "file:line:col: path: what is wrong and the fix".
int mock_script_parse(struct arena *a, const char *name, const char *base_dir, const char *text, size_t len,
                      struct mock_script *ret_script, struct buf *ret_errors, struct err *e);
// The same from the file at path; NULL: the built-in script.
int mock_script_read(struct arena *a, const char *path, struct mock_script *ret_script, struct buf *ret_errors,
                     struct err *e);

#endif
