// SPDX-License-Identifier: Apache-2.0
#include "exporter/mock_model.h"

#include <math.h>

// Readings of an H200-like board; only their shape matters: each moves the way the real one does.
#define SM_CLOCK_IDLE_MHZ  345
#define SM_CLOCK_BUSY_MHZ  1980
#define MEM_CLOCK_MHZ      3201
#define TEMP_IDLE_CELSIUS  31.0
#define TEMP_BUSY_CELSIUS  76.0
#define TEMP_LAG_MS        20000.0
#define MEMORY_TEMP_ABOVE  7.0
#define RESERVED_RATIO     0.004
#define HELD_MEMORY_RATIO  0.88
#define PCIE_TX_BUSY_BYTES 4e9
#define PCIE_RX_BUSY_BYTES 9e9
#define REASON_GPU_IDLE    0x1
#define REASON_POWER_CAP   0x4

static double clamp01(double v)
{
	return v < 0 ? 0 : v > 1 ? 1 : v;
}

void workload_step(const struct workload_params *w, struct workload_state *s, double t_ms, int32_t replicas)
{
	double dt_ms = t_ms - s->t_ms;
	double span_ms = dt_ms > w->smooth_ms ? dt_ms : w->smooth_ms;
	if (span_ms < 1)
		span_ms = 1;
	// At the very start there is no past: look at the first moment instead.
	double from_ms = t_ms > span_ms ? t_ms - span_ms : 0;
	double demand = series_mean(&w->demand, from_ms, t_ms > from_ms ? t_ms : from_ms + span_ms);
	s->demand = demand > 0 ? demand : 0;
	s->replicas = replicas;

	double capacity = (double)replicas * w->capacity_per_replica;
	double dt_s = dt_ms > 0 ? dt_ms / 1000 : 0;
	double wanted = dt_s > 0 ? s->demand + s->backlog / dt_s : s->demand;
	double served = wanted < capacity ? wanted : capacity;
	s->backlog = dt_s > 0 ? fmax(0, (wanted - served) * dt_s) : s->backlog;
	if (w->backlog_max > 0 && s->backlog > w->backlog_max)
		s->backlog = w->backlog_max;
	s->utilization = capacity > 0 ? clamp01(fmax(served / capacity, w->idle_ratio)) : 0;
	s->t_ms = t_ms;
}

void gpu_step(const struct gpu_params *g, struct gpu_state *s, double t_ms, double utilization, bool held,
              struct device_sample *ret_sample)
{
	double u = clamp01(utilization);
	double target_celsius = TEMP_IDLE_CELSIUS + (TEMP_BUSY_CELSIUS - TEMP_IDLE_CELSIUS) * u;
	double power_watts = g->idle_power_watts + (g->power_limit_watts - g->idle_power_watts) * u;
	if (s->started && t_ms > s->t_ms) {
		double dt_ms = t_ms - s->t_ms;
		s->temp_celsius += (target_celsius - s->temp_celsius) * (1 - exp(-dt_ms / TEMP_LAG_MS));
		s->energy_mj += power_watts * dt_ms;
	} else if (!s->started) {
		s->temp_celsius = TEMP_IDLE_CELSIUS;
		s->started = true;
	}
	s->t_ms = t_ms;

	struct device_sample *r = ret_sample;
	bool busy = u > 0.01;
	int64_t total = g->memory_mib, reserved = llround(RESERVED_RATIO * (double)total);
	int64_t used = held ? llround(HELD_MEMORY_RATIO * (double)(total - reserved)) : 0;
	sample_set_i64(r, FIELD_SM_CLOCK, busy ? SM_CLOCK_BUSY_MHZ : SM_CLOCK_IDLE_MHZ);
	sample_set_i64(r, FIELD_MEM_CLOCK, MEM_CLOCK_MHZ);
	sample_set_i64(r, FIELD_MEMORY_TEMP, llround(s->temp_celsius + MEMORY_TEMP_ABOVE));
	sample_set_i64(r, FIELD_GPU_TEMP, llround(s->temp_celsius));
	sample_set_f64(r, FIELD_POWER_USAGE, power_watts);
	sample_set_i64(r, FIELD_TOTAL_ENERGY, llround(s->energy_mj));
	sample_set_f64(r, FIELD_POWER_LIMIT, g->power_limit_watts);
	sample_set_i64(r, FIELD_PCIE_REPLAY, 0);
	sample_set_i64(r, FIELD_GPU_UTIL, llround(100 * u));
	sample_set_i64(r, FIELD_MEM_COPY_UTIL, llround(50 * u));
	sample_set_i64(r, FIELD_ENC_UTIL, 0);
	sample_set_i64(r, FIELD_DEC_UTIL, 0);
	sample_set_i64(r, FIELD_CLOCKS_EVENT_REASONS, !busy ? REASON_GPU_IDLE : u > 0.995 ? REASON_POWER_CAP : 0);
	sample_set_i64(r, FIELD_FB_TOTAL, total);
	sample_set_i64(r, FIELD_FB_FREE, total - reserved - used);
	sample_set_i64(r, FIELD_FB_USED, used);
	sample_set_i64(r, FIELD_FB_RESERVED, reserved);
	sample_set_i64(r, FIELD_ECC_SBE_VOL, 0);
	sample_set_i64(r, FIELD_ECC_DBE_VOL, 0);
	sample_set_i64(r, FIELD_ECC_SBE_AGG, 0);
	sample_set_i64(r, FIELD_ECC_DBE_AGG, 0);
	sample_set_f64(r, FIELD_GR_ENGINE_ACTIVE, u);
	sample_set_f64(r, FIELD_SM_ACTIVE, u);
	sample_set_f64(r, FIELD_SM_OCCUPANCY, 0.6 * u);
	sample_set_f64(r, FIELD_PIPE_TENSOR_ACTIVE, 0.45 * u);
	sample_set_f64(r, FIELD_DRAM_ACTIVE, 0.55 * u);
	sample_set_i64(r, FIELD_PCIE_TX_BYTES, llround(PCIE_TX_BUSY_BYTES * u));
	sample_set_i64(r, FIELD_PCIE_RX_BYTES, llround(PCIE_RX_BUSY_BYTES * u));
}
