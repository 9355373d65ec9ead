// SPDX-License-Identifier: Apache-2.0
// The model of the mock: a workload that spreads its demand over its replicas, a GPU whose readings follow its
// utilization, and what faults change in them. Pure: state and time in, values out.
#ifndef GPUSCALE_EXPORTER_MOCK_MOCK_MODEL_H
#define GPUSCALE_EXPORTER_MOCK_MOCK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/device.h"
#include "exporter/mock/mock_script.h"

struct workload_state {
	double t_ms;        // time of the last step
	double demand;      // work per second that arrived, mean over the last step
	double backlog;     // queued work
	double capacity;    // work per second that the ready replicas can do
	double utilization; // 0 to 1, of every GPU used by a ready replica
	int32_t replicas;   // ready replicas at the last step
};

// Advances `s` to `t_ms` with `replicas` ready replicas. Their capacity follows Amdahl's law: n x capacity_per_replica
// / (1 + serial_ratio x (n - 1)). Work that the replicas cannot serve is queued; spare capacity serves the queue:
// served = min(capacity, demand + backlog / time), utilization = served / capacity.
void workload_step(const struct mock_workload *w, struct workload_state *s, double t_ms, int32_t replicas);

struct gpu_state {
	bool started;
	double t_ms;
	double temp_celsius;
	double energy_mj;
	double capped_ns; // time at the power limit
	double dt_ms;     // length of the last step
};

// Advances `s` to `t_ms` at `utilization` (0 to 1). `memory_mib` is the memory of the GPU or of its instance; `held`
// means that a process uses it. Fills every field except XID_ERRORS.
void gpu_step(const struct mock_gpu *g, int32_t memory_mib, struct gpu_state *s, double t_ms, double utilization,
              bool held, struct device_sample *ret_sample);

// Makes the fields of `s` agree with those that a script gave, given[f] != NULL: memory and BAR1 add up, and power,
// energy, NVLink and tensor families report the same. Fields without a value stay without one. Call it once after
// gpu_step() of the same `g`, whose power was `model_watts`.
void gpu_derive(struct gpu_state *g, const struct mock_series *const given[FIELD__COUNT], double model_watts,
                struct device_sample *s);

bool mock_fault_is_active(const struct mock_fault *f, int64_t t_ms);
// Applies the faults of GPU `gpu` at `t_ms` since the start; the GPU draws `idle_watts` when idle. Fields without a
// value stay without one. A leak ends with its time, as when the process is restarted.
void mock_faults_apply(const struct mock_faults faults[MOCK_FAULT__COUNT], int32_t gpu, double idle_watts, int64_t t_ms,
                       struct device_sample *s);

#endif
