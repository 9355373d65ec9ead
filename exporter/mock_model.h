// SPDX-License-Identifier: Apache-2.0
// The mock's physics: a workload that shares its demand over its replicas, and a GPU whose readings follow its
// utilisation. Pure: state in, time in, values out.
#ifndef GPUSCALE_EXPORTER_MOCK_MODEL_H
#define GPUSCALE_EXPORTER_MOCK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/device.h"
#include "exporter/series.h"

// What a workload is; demand and capacity in the same unit of work a second.
struct workload_params {
	struct series demand;
	double smooth_ms; // demand is averaged over this time before it arrives; 0 = as given
	double capacity_per_replica;
	double backlog_max; // what waits above this gives up; 0 = no ceiling
	double idle_ratio;  // utilisation of a held GPU with nothing to do
};

struct workload_state {
	double t_ms;        // time of the last step
	double demand;      // work a second that arrived, mean over the last step
	double backlog;     // work that waits
	double utilization; // 0 - 1, of every GPU held by a ready replica
	int32_t replicas;   // ready ones at the last step
};

// Goes on to t_ms with this many ready replicas. What the replicas cannot serve waits; spare capacity serves what
// waits: served = min(replicas x capacity, demand + backlog / time), utilisation = served / (replicas x capacity).
void workload_step(const struct workload_params *w, struct workload_state *s, double t_ms, int32_t replicas);

struct gpu_params {
	int32_t memory_mib;
	double power_limit_watts, idle_power_watts;
};

struct gpu_state {
	bool started;
	double t_ms;
	double temp_celsius;
	double energy_mj;
	double capped_ns; // at the power limit
};

// Goes on to t_ms at this utilisation (0 - 1); held: a process has the GPU's memory. Fills every field but XID_ERRORS.
void gpu_step(const struct gpu_params *g, struct gpu_state *s, double t_ms, double utilization, bool held,
              struct device_sample *ret_sample);

#endif
