// SPDX-License-Identifier: Apache-2.0
// The one table of a GPUIdleRule's status: the CRD's schema is generated from it, and the next process decodes the
// status with it.
#ifndef GPUSCALE_CONTROLLER_IDLE_IDLE_STATUS_SCHEMA_H
#define GPUSCALE_CONTROLLER_IDLE_IDLE_STATUS_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

struct schema;

#define IDLE_RECORDS_MAX           500 // further workloads are counted only, and never scaled
#define IDLE_STATUS_SENTENCE_BYTES 1024

// A decoded status: strings are NULL when absent, times are ms since the epoch, 0: absent.
struct idle_status_workload {
	const char *id, *namespace_name, *kind, *name, *gpus, *cost, *message;
	int state; // enum idle_state
	int64_t since_ms, warned_ms, changed_ms;
	int32_t replicas;
};
struct idle_status {
	int64_t observed_generation, updated_ms, last_scale_ms;
	const char *gpus, *unallocated, *cost, *message;
	int32_t workload_count;
	const struct idle_status_workload *workloads;
	size_t n_workloads;
};

// Decodes the object at `status` into struct idle_status.
const struct schema *idle_status_schema(void);

#endif
