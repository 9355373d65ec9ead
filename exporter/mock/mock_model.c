// SPDX-License-Identifier: Apache-2.0
// The model of the mock: a workload that spreads its demand over its replicas, a GPU whose readings follow its
// utilization, and what faults change in them. Pure: state and time in, values out.
#include "exporter/mock/mock.h"

#include <math.h>

// Constants of an H200-like board. Only the shapes matter: each reading moves the way the real one does.
#define SM_CLOCK_IDLE_MHZ  345
#define SM_CLOCK_BUSY_MHZ  1980
#define MEM_CLOCK_MHZ      3201
#define VIDEO_CLOCK_MHZ    1545
#define SLOWDOWN_CELSIUS   87
#define SHUTDOWN_CELSIUS   92
#define FAN_IDLE_PERCENT   30
#define LINK_GEN           5
#define LINK_WIDTH         16
#define BAR1_USED_MIB      4
#define LIMIT_MIN_RATIO    0.3
#define TEMP_IDLE_CELSIUS  31.0
#define TEMP_BUSY_CELSIUS  76.0
#define TEMP_LAG_MS        20000.0
#define MEMORY_TEMP_ABOVE  7.0
#define RESERVED_RATIO     0.004
#define HELD_MEMORY_RATIO  0.88
#define PCIE_TX_BUSY_BYTES 4e9
#define PCIE_RX_BUSY_BYTES 9e9
#define LINK_TX_BUSY_BYTES 60e9
#define LINK_RX_BUSY_BYTES 58e9
#define BANDWIDTH_BYTES    1024e3 // one unit of DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL
#define REASON_GPU_IDLE    0x1
#define REASON_POWER_CAP   0x4
#define COUNT(a)           (sizeof(a) / sizeof((a)[0]))

static double clamp01(double v)
{
	return v < 0 ? 0 : v > 1 ? 1 : v;
}

void workload_step(const struct mock_workload *w, struct workload_state *s, double t_ms, int32_t replicas)
{
	double dt_ms = t_ms - s->t_ms;
	double span_ms = fmax(dt_ms, (double)w->demand.smooth_ms);
	if (span_ms < 1)
		span_ms = 1;
	// At the start there is no previous step: take the value at that moment.
	double from_ms = t_ms > span_ms ? t_ms - span_ms : 0;
	double demand = mock_series_mean(&w->demand_series, from_ms, t_ms > from_ms ? t_ms : from_ms + span_ms);
	s->demand = demand > 0 ? demand : 0;
	s->replicas = replicas;

	double capacity = s->capacity =
	        replicas > 0 ? replicas * w->capacity_per_replica / (1 + w->serial_ratio * (replicas - 1)) : 0;
	double dt_s = dt_ms > 0 ? dt_ms / 1000 : 0;
	double wanted = dt_s > 0 ? s->demand + s->backlog / dt_s : s->demand;
	double served = wanted < capacity ? wanted : capacity;
	s->backlog = dt_s > 0 ? fmax(0, (wanted - served) * dt_s) : s->backlog;
	if (w->backlog_max > 0 && s->backlog > w->backlog_max)
		s->backlog = w->backlog_max;
	s->utilization = capacity > 0 ? clamp01(fmax(served / capacity, w->idle_percent / 100)) : 0;
	s->t_ms = t_ms;
}

void gpu_step(const struct mock_gpu *g, int32_t memory_mib, struct gpu_state *s, double t_ms, double utilization,
              bool held, struct device_sample *ret_sample)
{
	double u = clamp01(utilization);
	double target_celsius = TEMP_IDLE_CELSIUS + (TEMP_BUSY_CELSIUS - TEMP_IDLE_CELSIUS) * u;
	double power_watts = g->idle_power_watts + (g->power_limit_watts - g->idle_power_watts) * u;
	double dt_ms = s->dt_ms = s->started && t_ms > s->t_ms ? t_ms - s->t_ms : 0;
	if (dt_ms > 0) {
		s->temp_celsius += (target_celsius - s->temp_celsius) * (1 - exp(-dt_ms / TEMP_LAG_MS));
		s->energy_mj += power_watts * dt_ms;
	} else if (!s->started) {
		s->temp_celsius = TEMP_IDLE_CELSIUS;
		s->started = true;
	}
	s->t_ms = t_ms;

	bool busy = u > 0.01, capped = u > 0.995;
	if (capped)
		s->capped_ns += dt_ms * 1e6;
	int64_t total = memory_mib, reserved = llround(RESERVED_RATIO * (double)total);
	int64_t used = held ? llround(HELD_MEMORY_RATIO * (double)(total - reserved)) : 0;
	double tx_bytes = LINK_TX_BUSY_BYTES * u, rx_bytes = LINK_RX_BUSY_BYTES * u;
	const struct {
		enum field field;
		double value;
	} rows[] = {
	        {FIELD_SM_CLOCK, busy ? SM_CLOCK_BUSY_MHZ : SM_CLOCK_IDLE_MHZ},
	        {FIELD_MEM_CLOCK, MEM_CLOCK_MHZ},
	        {FIELD_VIDEO_CLOCK, VIDEO_CLOCK_MHZ},
	        {FIELD_MAX_SM_CLOCK, SM_CLOCK_BUSY_MHZ},
	        {FIELD_MAX_MEM_CLOCK, MEM_CLOCK_MHZ},
	        {FIELD_MEMORY_TEMP, s->temp_celsius + MEMORY_TEMP_ABOVE},
	        {FIELD_GPU_TEMP, s->temp_celsius},
	        {FIELD_SLOWDOWN_TEMP, SLOWDOWN_CELSIUS},
	        {FIELD_SHUTDOWN_TEMP, SHUTDOWN_CELSIUS},
	        {FIELD_POWER_USAGE, power_watts},
	        {FIELD_POWER_USAGE_INSTANT, power_watts},
	        {FIELD_TOTAL_ENERGY, s->energy_mj},
	        {FIELD_POWER_LIMIT, g->power_limit_watts},
	        {FIELD_POWER_LIMIT_MIN, g->power_limit_watts * LIMIT_MIN_RATIO},
	        {FIELD_POWER_LIMIT_MAX, g->power_limit_watts},
	        {FIELD_POWER_LIMIT_DEFAULT, g->power_limit_watts},
	        {FIELD_ENFORCED_POWER_LIMIT, g->power_limit_watts},
	        {FIELD_FAN_SPEED, FAN_IDLE_PERCENT + (100 - FAN_IDLE_PERCENT) * u},
	        {FIELD_PCIE_MAX_LINK_GEN, LINK_GEN},
	        {FIELD_PCIE_MAX_LINK_WIDTH, LINK_WIDTH},
	        {FIELD_PCIE_LINK_GEN, LINK_GEN},
	        {FIELD_PCIE_LINK_WIDTH, LINK_WIDTH},
	        {FIELD_GPU_UTIL, 100 * u},
	        {FIELD_MEM_COPY_UTIL, 50 * u},
	        {FIELD_CLOCKS_EVENT_REASONS, !busy    ? REASON_GPU_IDLE
	                                     : capped ? REASON_POWER_CAP
	                                              : 0},
	        {FIELD_POWER_VIOLATION, s->capped_ns},
	        {FIELD_FB_TOTAL, (double)total},
	        {FIELD_FB_FREE, (double)(total - reserved - used)},
	        {FIELD_FB_USED, (double)used},
	        {FIELD_FB_RESERVED, (double)reserved},
	        {FIELD_FB_USED_PERCENT, total > reserved ? (double)used / (double)(total - reserved) : 0},
	        {FIELD_BAR1_TOTAL, (double)total},
	        {FIELD_BAR1_USED, BAR1_USED_MIB < total ? BAR1_USED_MIB : 0},
	        {FIELD_BAR1_FREE, BAR1_USED_MIB < total ? (double)(total - BAR1_USED_MIB) : (double)total},
	        {FIELD_NVLINK_BANDWIDTH_TOTAL, (tx_bytes + rx_bytes) / BANDWIDTH_BYTES},
	        {FIELD_GR_ENGINE_ACTIVE, u},
	        {FIELD_SM_ACTIVE, u},
	        {FIELD_SM_OCCUPANCY, 0.6 * u},
	        {FIELD_PIPE_TENSOR_ACTIVE, 0.45 * u},
	        {FIELD_DRAM_ACTIVE, 0.55 * u},
	        {FIELD_PIPE_FP64_ACTIVE, 0.01 * u},
	        {FIELD_PIPE_FP32_ACTIVE, 0.2 * u},
	        {FIELD_PIPE_FP16_ACTIVE, 0.1 * u},
	        {FIELD_PCIE_TX_BYTES, PCIE_TX_BUSY_BYTES * u},
	        {FIELD_PCIE_RX_BYTES, PCIE_RX_BUSY_BYTES * u},
	        {FIELD_NVLINK_TX_BYTES, tx_bytes},
	        {FIELD_NVLINK_RX_BYTES, rx_bytes},
	        {FIELD_PIPE_TENSOR_HMMA_ACTIVE, 0.45 * u},
	        {FIELD_PIPE_INT_ACTIVE, 0.25 * u},
	};
	// A healthy board: all other fields are 0, among them errors, retired pages and remapped rows.
	for (enum field f = 0; f < FIELD__COUNT; f++)
		if (f != FIELD_XID_ERRORS)
			sample_set(ret_sample, f, 0);
	for (size_t i = 0; i < COUNT(rows); i++)
		sample_set(ret_sample, rows[i].field, rows[i].value);
}

static const enum field power[] = {FIELD_POWER_USAGE, FIELD_POWER_USAGE_INSTANT};

static double get(const struct device_sample *s, enum field f)
{
	return sample_has(s, f) ? sample_get(s, f) : 0;
}

static void put(struct device_sample *s, const struct mock_series *const *given, enum field f, double v)
{
	if (!given[f] && sample_has(s, f))
		sample_set(s, f, v);
}

// total = reserved + used + free, and the share of what is not reserved; FIELD__COUNT: there is no such field.
static void derive_memory(struct device_sample *s, const struct mock_series *const *given, enum field total_field,
                          enum field used_field, enum field free_field, enum field reserved, enum field share)
{
	double room = get(s, total_field) - (reserved == FIELD__COUNT ? 0 : get(s, reserved));
	bool has_share = share != FIELD__COUNT && given[share] && sample_has(s, share);
	if (!sample_has(s, total_field))
		return;
	if (given[free_field] && sample_has(s, free_field))
		put(s, given, used_field, fmax(0, room - get(s, free_field)));
	else if (has_share)
		put(s, given, used_field, get(s, share) * room);
	else
		put(s, given, used_field, fmin(get(s, used_field), room));
	if (!sample_has(s, used_field))
		return;
	put(s, given, free_field, fmax(0, room - get(s, used_field)));
	if (share != FIELD__COUNT)
		put(s, given, share, room > 0 ? clamp01(get(s, used_field) / room) : 0);
}

void gpu_derive(struct gpu_state *g, const struct mock_series *const given[FIELD__COUNT], double model_watts,
                struct device_sample *s)
{
	derive_memory(s, given, FIELD_FB_TOTAL, FIELD_FB_USED, FIELD_FB_FREE, FIELD_FB_RESERVED, FIELD_FB_USED_PERCENT);
	derive_memory(s, given, FIELD_BAR1_TOTAL, FIELD_BAR1_USED, FIELD_BAR1_FREE, FIELD__COUNT, FIELD__COUNT);
	for (int i = 0; i < 2; i++)
		if (given[power[i]] && sample_has(s, power[i]))
			put(s, given, power[!i], get(s, power[i]));
	if (sample_has(s, FIELD_POWER_USAGE))
		g->energy_mj += (get(s, FIELD_POWER_USAGE) - model_watts) * g->dt_ms;
	put(s, given, FIELD_TOTAL_ENERGY, fmax(0, g->energy_mj));
	if (given[FIELD_NVLINK_TX_BYTES] || given[FIELD_NVLINK_RX_BYTES])
		put(s, given, FIELD_NVLINK_BANDWIDTH_TOTAL,
		    (get(s, FIELD_NVLINK_TX_BYTES) + get(s, FIELD_NVLINK_RX_BYTES)) / BANDWIDTH_BYTES);
	if (given[FIELD_PIPE_TENSOR_ACTIVE] && sample_has(s, FIELD_PIPE_TENSOR_ACTIVE))
		put(s, given, FIELD_PIPE_TENSOR_HMMA_ACTIVE, get(s, FIELD_PIPE_TENSOR_ACTIVE));
}

// ---- faults ----

// The time for which the fault has lasted; 0 before it starts. It stays at for_ms afterwards.
static int64_t lasted_ms(const struct mock_fault *f, int64_t t_ms)
{
	int64_t ms = t_ms > f->at_ms ? t_ms - f->at_ms : 0;
	return f->for_ms && ms > f->for_ms ? f->for_ms : ms;
}

bool mock_fault_is_active(const struct mock_fault *f, int64_t t_ms)
{
	return t_ms >= f->at_ms && (f->for_ms == 0 || t_ms - f->at_ms < f->for_ms);
}

static void change(struct device_sample *s, enum field f, double v)
{
	if (sample_has(s, f))
		sample_set(s, f, v);
}

static void add(struct device_sample *s, enum field f, double v)
{
	if (sample_has(s, f))
		change(s, f, sample_get(s, f) + v);
}

static void scale(struct device_sample *s, const enum field *fields, size_t n, double factor)
{
	for (size_t i = 0; i < n; i++)
		if (sample_has(s, fields[i]))
			change(s, fields[i], sample_get(s, fields[i]) * factor);
}

static void apply_throttle(const struct mock_fault *x, double idle_watts, int64_t t_ms, struct device_sample *s)
{
	static const struct {
		int64_t bit;
		enum field violation;
	} rows[] = {
	        [THROTTLE_THERMAL] = {0x20, FIELD_THERMAL_VIOLATION},
	        [THROTTLE_POWER] = {0x04, FIELD_POWER_VIOLATION},
	        [THROTTLE_HW] = {0x08 | 0x40, FIELD_THERMAL_VIOLATION},
	        [THROTTLE_POWER_BRAKE] = {0x08 | 0x80, FIELD_POWER_VIOLATION},
	};
	static const enum field clocks[] = {FIELD_SM_CLOCK};
	add(s, rows[x->reason].violation, (double)lasted_ms(x, t_ms) * 1e6);
	if (!mock_fault_is_active(x, t_ms))
		return;
	scale(s, clocks, 1, x->clock_percent / 100);
	if (sample_has(s, FIELD_CLOCKS_EVENT_REASONS))
		sample_set_i64(s, FIELD_CLOCKS_EVENT_REASONS,
		               s->value[FIELD_CLOCKS_EVENT_REASONS].i | rows[x->reason].bit);
	if ((x->reason == THROTTLE_THERMAL || x->reason == THROTTLE_HW) && sample_has(s, FIELD_SLOWDOWN_TEMP))
		change(s, FIELD_GPU_TEMP, sample_get(s, FIELD_SLOWDOWN_TEMP) + 1);
}

static void apply_ecc(const struct mock_fault *x, double idle_watts, int64_t t_ms, struct device_sample *s)
{
	static const enum field fields[][2] = {{FIELD_ECC_SBE_VOL, FIELD_ECC_SBE_AGG},
	                                       {FIELD_ECC_DBE_VOL, FIELD_ECC_DBE_AGG}};
	double n = t_ms < x->at_ms ? 0
	           : x->for_ms     ? floor((double)x->count * (double)lasted_ms(x, t_ms) / (double)x->for_ms)
	                           : x->count;
	add(s, fields[x->reason][0], n);
	add(s, fields[x->reason][1], n);
}

static void apply_leak(const struct mock_fault *x, double idle_watts, int64_t t_ms, struct device_sample *s)
{
	if (!sample_has(s, FIELD_FB_USED) || !sample_has(s, FIELD_FB_FREE))
		return;
	double used = sample_get(s, FIELD_FB_USED), free_mib = sample_get(s, FIELD_FB_FREE);
	double leaked = fmin(free_mib, x->mib_per_hour * (double)lasted_ms(x, t_ms) / 3600e3);
	change(s, FIELD_FB_USED, used + leaked);
	change(s, FIELD_FB_FREE, free_mib - leaked);
	change(s, FIELD_FB_USED_PERCENT, used + free_mib > 0 ? (used + leaked) / (used + free_mib) : 0);
}

// The readings that follow the rate of work.
static const enum field work[] = {FIELD_SM_CLOCK,           FIELD_SM_ACTIVE,        FIELD_SM_OCCUPANCY,
                                  FIELD_PIPE_TENSOR_ACTIVE, FIELD_DRAM_ACTIVE,      FIELD_PIPE_FP64_ACTIVE,
                                  FIELD_PIPE_FP32_ACTIVE,   FIELD_PIPE_FP16_ACTIVE, FIELD_PIPE_TENSOR_HMMA_ACTIVE,
                                  FIELD_PIPE_INT_ACTIVE};
static const enum field traffic[] = {FIELD_MEM_COPY_UTIL,   FIELD_PCIE_TX_BYTES,   FIELD_PCIE_RX_BYTES,
                                     FIELD_NVLINK_TX_BYTES, FIELD_NVLINK_RX_BYTES, FIELD_NVLINK_BANDWIDTH_TOTAL};

static void scale_power_above_idle(struct device_sample *s, double idle_watts, double factor)
{
	for (size_t i = 0; i < COUNT(power); i++)
		if (sample_has(s, power[i]) && sample_get(s, power[i]) > idle_watts)
			change(s, power[i], idle_watts + (sample_get(s, power[i]) - idle_watts) * factor);
}

static void apply_straggler(const struct mock_fault *x, double idle_watts, int64_t t_ms, struct device_sample *s)
{
	double factor = 1 - x->slower_percent / 100;
	scale(s, work, COUNT(work), factor);
	scale(s, traffic, COUNT(traffic), factor);
	scale_power_above_idle(s, idle_watts, factor);
}

// One kernel spins on a few SMs: the driver reports a busy GPU that moves no data and draws little power.
#define HUNG_SM_ACTIVE    0.1
#define HUNG_SM_OCCUPANCY 0.02
#define HUNG_POWER_RATIO  0.15
static void apply_hang(const struct mock_fault *x, double idle_watts, int64_t t_ms, struct device_sample *s)
{
	scale(s, &work[1], COUNT(work) - 1, 0); // all but the clock
	scale(s, traffic, COUNT(traffic), 0);
	change(s, FIELD_GPU_UTIL, 100);
	change(s, FIELD_GR_ENGINE_ACTIVE, 1);
	change(s, FIELD_SM_ACTIVE, HUNG_SM_ACTIVE);
	change(s, FIELD_SM_OCCUPANCY, HUNG_SM_OCCUPANCY);
	if (!sample_has(s, FIELD_POWER_LIMIT))
		return;
	double limit = sample_get(s, FIELD_POWER_LIMIT);
	for (size_t i = 0; i < COUNT(power); i++)
		change(s, power[i], idle_watts + (limit - idle_watts) * HUNG_POWER_RATIO);
}

// Bytes a second of a lane double with each generation; 0.25 GB/s is the first.
static void apply_downtrain(const struct mock_fault *x, double idle_watts, int64_t t_ms, struct device_sample *s)
{
	static const enum field rates[] = {FIELD_PCIE_TX_BYTES, FIELD_PCIE_RX_BYTES};
	double most = 0.25e9 * pow(2, x->generation - 1) * x->lanes;
	change(s, FIELD_PCIE_LINK_GEN, x->generation);
	change(s, FIELD_PCIE_LINK_WIDTH, x->lanes);
	for (size_t i = 0; i < COUNT(rates); i++)
		if (sample_has(s, rates[i]) && sample_get(s, rates[i]) > most)
			change(s, rates[i], most);
}

void mock_faults_apply(const struct mock_faults faults[MOCK_FAULT__COUNT], int32_t gpu, double idle_watts, int64_t t_ms,
                       struct device_sample *s)
{
	static const struct {
		enum mock_fault_kind kind;
		void (*apply)(const struct mock_fault *x, double idle_watts, int64_t t_ms, struct device_sample *s);
		bool lasts; // beyond the fault, as the errors that it has caused
	} effects[] = {{MOCK_STRAGGLER, apply_straggler, false}, {MOCK_HANG, apply_hang, false},
	               {MOCK_THROTTLE, apply_throttle, true},    {MOCK_ECC, apply_ecc, true},
	               {MOCK_LEAK, apply_leak, false},           {MOCK_DOWNTRAIN, apply_downtrain, false}};
	for (size_t k = 0; k < COUNT(effects); k++)
		for (size_t i = 0; i < faults[effects[k].kind].n; i++) {
			const struct mock_fault *x = &faults[effects[k].kind].list[i];
			if (x->gpu == gpu && (effects[k].lasts || mock_fault_is_active(x, t_ms)))
				effects[k].apply(x, idle_watts, t_ms, s);
		}
}
