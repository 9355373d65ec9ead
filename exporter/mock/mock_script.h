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

// What a script gives for a GPU or a MIG instance.
struct mock_given {
	const char *namespace_, *pod, *container;
	const struct doc_node *series_node;
	const struct mock_series *series[FIELD__COUNT]; // NULL: no series for this field
};

// A MIG instance of each GPU that lists it.
struct mock_instance {
	const char *profile;
	int32_t id;
	struct mock_given given;
};

struct mock_gpu {
	int32_t count;
	const char *uuid, *model, *pci_bus_id;
	const char *mig_profile, *mig_id;
	struct mock_given given;
	int32_t memory_mib;
	double power_limit_watts, idle_power_watts;
	struct mock_instance *instances;
	size_t n_instances;
};

// The kinds in the order of the lists of a script. A loss is a time during which a GPU does not respond.
enum mock_fault_kind {
	MOCK_XID,
	MOCK_LOSS,
	MOCK_THROTTLE,
	MOCK_ECC,
	MOCK_LEAK,
	MOCK_STRAGGLER,
	MOCK_HANG,
	MOCK_DOWNTRAIN,
	MOCK_FAULT__COUNT
};
enum mock_throttle_reason { THROTTLE_THERMAL, THROTTLE_POWER, THROTTLE_HW, THROTTLE_POWER_BRAKE, THROTTLE__COUNT };

struct mock_fault {
	int64_t at_ms, for_ms; // for_ms 0: forever; ECC: the time over which the errors are spread
	int32_t gpu;
	int32_t code, count; // XID, its code; XID and ECC: how many
	int reason;          // THROTTLE: enum mock_throttle_reason; ECC: 0 corrected, 1 uncorrectable
	double clock_percent, mib_per_hour, slower_percent; // THROTTLE, LEAK, STRAGGLER
	int32_t generation, lanes;                          // DOWNTRAIN
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
	struct mock_faults {
		struct mock_fault *list;
		size_t n;
	} faults[MOCK_FAULT__COUNT];
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
