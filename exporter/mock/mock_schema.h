// SPDX-License-Identifier: Apache-2.0
// The fields of a mock script: the structs that a script is decoded into, and their table (base/schema/schema.h).
#ifndef GPUSCALE_EXPORTER_MOCK_MOCK_SCHEMA_H
#define GPUSCALE_EXPORTER_MOCK_MOCK_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/schema/schema.h"
#include "exporter/families.h"
#include "exporter/mock/mock_faults.h"
#include "exporter/mock/mock_series.h"

struct doc_node;

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

struct mock_loss {
	int64_t at_ms, for_ms; // for_ms 0: forever
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
	struct mock_loss *losses;
	size_t n_losses;
	struct mock_faults faults;
	bool has_workload;
	struct mock_workload workload;
	int32_t n_boards;  // sum of gpus[].count
	int32_t n_devices; // with the MIG instances
};

// A series written as a map.
struct mock_series_map {
	struct mock_sine sine;
};

extern const struct schema mock_script_schema; // struct mock_script
extern const struct schema mock_series_schema; // struct mock_series_map

#endif
