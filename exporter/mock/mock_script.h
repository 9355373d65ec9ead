// SPDX-License-Identifier: Apache-2.0
// Mock scripts: YAML files that describe GPUs and what happens to them (docs/exporter.md). A script depends only on the
// time since the start, so that it repeats exactly.
#ifndef GPUSCALE_EXPORTER_MOCK_MOCK_SCRIPT_H
#define GPUSCALE_EXPORTER_MOCK_MOCK_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/families.h"
#include "exporter/mock/mock_series.h"

struct arena;
struct buf;
struct doc_node;
struct err;

#define MOCK_SCRIPT_BYTES_MAX (32 * 1024 * 1024) // memory of a script, with its CSV columns

// A MIG instance of each GPU that lists it.
struct mock_instance {
	const char *profile;
	int32_t id;
	const char *namespace_, *pod, *container;
	const struct doc_node *series_node;
	const struct mock_series *series[FIELD__COUNT];
};

struct mock_gpu {
	int32_t count;
	const char *uuid, *model, *pci_bus_id;
	const char *mig_profile, *mig_id;
	const char *namespace_, *pod, *container;
	int32_t memory_mib;
	double power_limit_watts, idle_power_watts;
	const struct doc_node *series_node;
	const struct mock_series *series[FIELD__COUNT]; // NULL: no series for this field
	struct mock_instance *instances;
	size_t n_instances;
};

struct mock_xid {
	int64_t at_ms;
	int32_t gpu, code, count;
};

// The part that all faults share. A GPU that does not respond for a time is nothing more.
struct mock_fault {
	int64_t at_ms, for_ms; // for_ms 0: forever
	int32_t gpu;
};

enum mock_throttle_reason { THROTTLE_THERMAL, THROTTLE_POWER, THROTTLE_HW, THROTTLE_POWER_BRAKE, THROTTLE__COUNT };
struct mock_throttle {
	struct mock_fault fault;
	int reason; // enum mock_throttle_reason
	double clock_percent;
};

struct mock_ecc {
	struct mock_fault fault; // for_ms: the time over which the errors are spread
	int kind;                // 0: corrected, 1: uncorrectable
	int32_t count;
};

struct mock_leak {
	struct mock_fault fault;
	double mib_per_hour;
};

struct mock_straggler {
	struct mock_fault fault;
	double slower_percent;
};

struct mock_downtrain {
	struct mock_fault fault;
	int32_t generation, lanes;
};

struct mock_faults {
	struct mock_throttle *throttles;
	struct mock_ecc *ecc;
	struct mock_leak *leaks;
	struct mock_straggler *stragglers;
	struct mock_fault *hangs;
	struct mock_downtrain *downtrains;
	size_t n_throttles, n_ecc, n_leaks, n_stragglers, n_hangs, n_downtrains;
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
	const char *url, *field, *token_file, *ca_file; // exactly one of: url,
	const char *file;                               // file,
	bool has_constant;
	int32_t constant; // constant
	int64_t interval_ms;
};

struct mock_workload {
	const char *name, *namespace_;
	struct mock_demand demand;
	double capacity_per_replica, serial_ratio;
	struct mock_replicas_source replicas;
	int32_t gpus_per_replica;
	double idle_percent;
	double backlog_max;               // 0: no limit
	struct mock_series demand_series; // compiled from `demand`
};

struct mock_script {
	const char *driver_version;
	int64_t step_ms;
	bool loop;
	struct mock_gpu *gpus;
	size_t n_gpus;
	struct mock_xid *xids;
	size_t n_xids;
	struct mock_fault *losses;
	size_t n_losses;
	struct mock_faults faults;
	bool has_workload;
	struct mock_workload workload;
	int32_t n_boards;  // sum of gpus[].count
	int32_t n_devices; // with the MIG instances
};

// Decodes text[0..len). `name` is used in messages; relative file names in the script start at `base_dir` ("" is the
// current directory). All memory comes from `a`. Returns -1 and fills `e` on failure; for errors in the script
// itself, `ret_errors` receives one line for each: "file:line:col: path: what is wrong and the fix".
int mock_script_parse(struct arena *a, const char *name, const char *base_dir, const char *text, size_t len,
                      struct mock_script *ret_script, struct buf *ret_errors, struct err *e);
// Reads the same from the file at `path`; NULL selects the built-in script.
int mock_script_read(struct arena *a, const char *path, struct mock_script *ret_script, struct buf *ret_errors,
                     struct err *e);

#endif
