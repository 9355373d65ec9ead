// SPDX-License-Identifier: Apache-2.0
// Reads one device through NVML.
#include "exporter/nvml/nvml.h"

#include <inttypes.h>
#include <math.h>

#include "base/base.h"
#include "exporter/backend.h"

#define BYTES_PER_MIB  1048576
#define WATTS_PER_MW   1e-3
#define FIELDS_MAX     32
#define COUNT(a)       (sizeof(a) / sizeof((a)[0]))
#define API(member)    offsetof(struct nvml_api, member)
#define BANDWIDTH_UNIT 1000 // DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL: KiB/s by 1000

// A library may succeed without writing: initialize outputs with "no value".
#define NONE     NVML_VALUE_NOT_AVAILABLE
#define NONE_U64 ((unsigned long long)-1)

// Calls a function that may be NULL. Evaluates to its result.
#define CALL(api, function, ...) ((api)->function ? (api)->function(__VA_ARGS__) : (nvml_return)NVML_FUNCTION_NOT_FOUND)

bool nvml_result_is_lost(nvml_return r)
{
	return r == NVML_GPU_IS_LOST || r == NVML_RESET_REQUIRED;
}

bool nvml_result_is_fatal(nvml_return r)
{
	return r == NVML_DRIVER_NOT_LOADED || r == NVML_LIB_RM_VERSION_MISMATCH || r == NVML_UNINITIALIZED;
}

static bool is_grave(nvml_return r)
{
	return nvml_result_is_lost(r) || nvml_result_is_fatal(r);
}

// Drops a value that no device can have: drivers succeed with all bits set, or with "unknown" as a number.
static void set(struct device_sample *s, enum field f, double v)
{
	if (!family_is_plausible(f, v)) {
		s->implausible += v != NONE;
		return;
	}
	sample_set(s, f, family_of(f)->kind == FIELD_INT ? trunc(v) : v);
}

// Kept as an integer, where a double would round.
static void set_u64(struct device_sample *s, enum field f, unsigned long long v)
{
	if (family_is_plausible(f, (double)v))
		sample_set_i64(s, f, (int64_t)v);
	else
		s->implausible += v != NONE_U64;
}

// ---- functions that give one number ----

struct number_row {
	enum field field;
	size_t function; // in struct nvml_api
	enum { NUMBER, SENSOR, CODER, COUNTER, ERRORS } shape;
	int a, b; // SENSOR: the sensor, clock or threshold; ERRORS: the kind of memory error and of counter
	double scale;
};
// clang-format off
static const struct number_row fast_numbers[] = {
	{FIELD_POWER_USAGE,          API(power),                NUMBER, 0, 0, WATTS_PER_MW},
	{FIELD_ENFORCED_POWER_LIMIT, API(power_limit_enforced), NUMBER, 0, 0, WATTS_PER_MW},
	{FIELD_PSTATE,               API(pstate),               NUMBER, 0, 0, 1},
	{FIELD_FAN_SPEED,            API(fan_speed),            NUMBER, 0, 0, 1},
	{FIELD_PCIE_LINK_GEN,        API(link_gen),             NUMBER, 0, 0, 1},
	{FIELD_PCIE_LINK_WIDTH,      API(link_width),           NUMBER, 0, 0, 1},
	{FIELD_GPU_TEMP,             API(temperature),          SENSOR, NVML_TEMPERATURE_GPU, 0, 1},
	{FIELD_SM_CLOCK,             API(clock),                SENSOR, NVML_CLOCK_SM, 0, 1},
	{FIELD_MEM_CLOCK,            API(clock),                SENSOR, NVML_CLOCK_MEM, 0, 1},
	{FIELD_VIDEO_CLOCK,          API(clock),                SENSOR, NVML_CLOCK_VIDEO, 0, 1},
	{FIELD_ENC_UTIL,             API(encoder),              CODER,  0, 0, 1},
	{FIELD_DEC_UTIL,             API(decoder),              CODER,  0, 0, 1},
	{FIELD_CLOCKS_EVENT_REASONS, API(event_reasons),        COUNTER, 0, 0, 1},
	{FIELD_ECC_SBE_VOL,          API(ecc_errors),           ERRORS, NVML_MEMORY_ERROR_SINGLE, NVML_ECC_VOLATILE, 1},
	{FIELD_ECC_DBE_VOL,          API(ecc_errors),           ERRORS, NVML_MEMORY_ERROR_DOUBLE, NVML_ECC_VOLATILE, 1},
	{FIELD_ECC_SBE_AGG,          API(ecc_errors),           ERRORS, NVML_MEMORY_ERROR_SINGLE, NVML_ECC_AGGREGATE, 1},
	{FIELD_ECC_DBE_AGG,          API(ecc_errors),           ERRORS, NVML_MEMORY_ERROR_DOUBLE, NVML_ECC_AGGREGATE, 1},
};
static const struct number_row costly_numbers[] = {
	{FIELD_PCIE_REPLAY,          API(pcie_replay),          NUMBER, 0, 0, 1},
	{FIELD_TOTAL_ENERGY,         API(energy),               COUNTER, 0, 0, 1},
};
static const struct number_row slow_numbers[] = {
	{FIELD_POWER_LIMIT,          API(power_limit),          NUMBER, 0, 0, WATTS_PER_MW},
	{FIELD_POWER_LIMIT_DEFAULT,  API(power_limit_default),  NUMBER, 0, 0, WATTS_PER_MW},
	{FIELD_PCIE_MAX_LINK_GEN,    API(max_link_gen),         NUMBER, 0, 0, 1},
	{FIELD_PCIE_MAX_LINK_WIDTH,  API(max_link_width),       NUMBER, 0, 0, 1},
	{FIELD_MAX_SM_CLOCK,         API(max_clock),            SENSOR, NVML_CLOCK_SM, 0, 1},
	{FIELD_MAX_MEM_CLOCK,        API(max_clock),            SENSOR, NVML_CLOCK_MEM, 0, 1},
	{FIELD_SLOWDOWN_TEMP,        API(threshold),            SENSOR, NVML_THRESHOLD_SLOWDOWN, 0, 1},
	{FIELD_SHUTDOWN_TEMP,        API(threshold),            SENSOR, NVML_THRESHOLD_SHUTDOWN, 0, 1},
};
// clang-format on

// Calls the function of the row. Writes its number to *ret_v, that of a COUNTER or of ERRORS to *ret_n.
static nvml_return read_number(const struct nvml_api *api, nvml_device d, const struct number_row *row, unsigned *ret_v,
                               unsigned long long *ret_n)
{
	unsigned period_us = 0;
	union {
		nvml_return (*number)(nvml_device, unsigned *);
		nvml_return (*sensor)(nvml_device, int, unsigned *);
		nvml_return (*coder)(nvml_device, unsigned *, unsigned *);
		nvml_return (*counter)(nvml_device, unsigned long long *);
		nvml_return (*errors)(nvml_device, int, int, unsigned long long *);
	} function;
	memcpy(&function, (const char *)api + row->function, sizeof function);
	if (!function.number)
		return NVML_FUNCTION_NOT_FOUND;
	switch (row->shape) {
	case SENSOR:
		return function.sensor(d, row->a, ret_v);
	case CODER:
		return function.coder(d, ret_v, &period_us);
	case COUNTER:
		return function.counter(d, ret_n);
	case ERRORS:
		return function.errors(d, row->a, row->b, ret_n);
	default:
		return function.number(d, ret_v);
	}
}

static nvml_return read_numbers(const struct nvml_api *api, nvml_device d, const struct number_row *rows, size_t n,
                                struct device_sample *s)
{
	for (size_t i = 0; i < n; i++) {
		unsigned v = NONE;
		unsigned long long large = NONE_U64;
		nvml_return r = read_number(api, d, &rows[i], &v, &large);
		if (is_grave(r))
			return r;
		if (r == NVML_SUCCESS && rows[i].shape >= COUNTER)
			set_u64(s, rows[i].field, large);
		else if (r == NVML_SUCCESS && v != NONE)
			set(s, rows[i].field, v * rows[i].scale);
	}
	return NVML_SUCCESS;
}

// ---- field values: many numbers in one call ----
struct value_row {
	enum field field;
	unsigned id;
	double scale;
};
static const struct value_row fast_values[] = {
        {FIELD_MEMORY_TEMP, NVML_FIELD_MEMORY_TEMP, 1},
        {FIELD_POWER_USAGE_INSTANT, NVML_FIELD_POWER_INSTANT, WATTS_PER_MW},
        {FIELD_POWER_VIOLATION, NVML_FIELD_VIOLATION_POWER, 1},
        {FIELD_SYNC_BOOST_VIOLATION, NVML_FIELD_VIOLATION_SYNC_BOOST, 1},
        {FIELD_BOARD_LIMIT_VIOLATION, NVML_FIELD_VIOLATION_BOARD_LIMIT, 1},
        {FIELD_LOW_UTIL_VIOLATION, NVML_FIELD_VIOLATION_LOW_UTIL, 1},
        {FIELD_RELIABILITY_VIOLATION, NVML_FIELD_VIOLATION_RELIABILITY, 1},
        {FIELD_APP_CLOCKS_VIOLATION, NVML_FIELD_VIOLATION_APP_CLOCKS, 1},
        {FIELD_BASE_CLOCKS_VIOLATION, NVML_FIELD_VIOLATION_BASE_CLOCKS, 1},
        {FIELD_NVLINK_CRC_FLIT_ERRORS, NVML_FIELD_NVLINK_CRC_FLIT, 1},
        {FIELD_NVLINK_CRC_DATA_ERRORS, NVML_FIELD_NVLINK_CRC_DATA, 1},
        {FIELD_NVLINK_REPLAY_ERRORS, NVML_FIELD_NVLINK_REPLAY, 1},
        {FIELD_NVLINK_RECOVERY_ERRORS, NVML_FIELD_NVLINK_RECOVERY, 1},
        {FIELD_RECOVERY_ACTION, NVML_FIELD_RECOVERY_ACTION, 1},
};
static const struct value_row costly_values[] = {
        {FIELD_THERMAL_VIOLATION, NVML_FIELD_VIOLATION_THERMAL, 1},
};
static const struct value_row slow_values[] = {
        {FIELD_RETIRED_SBE, NVML_FIELD_RETIRED_SBE, 1},
        {FIELD_RETIRED_DBE, NVML_FIELD_RETIRED_DBE, 1},
        {FIELD_RETIRED_PENDING, NVML_FIELD_RETIRED_PENDING, 1},
};
_Static_assert(COUNT(fast_values) <= FIELDS_MAX && COUNT(slow_values) <= FIELDS_MAX, "a batch fits");

// Converts a value of any type to a number from 0 to below 2^63. False if there is none.
static bool value_number(const struct nvml_field_value *v, double *ret)
{
	if (v->result != NVML_SUCCESS)
		return false;
	switch (v->value_type) {
	case NVML_VALUE_DOUBLE:
		*ret = v->value.d;
		break;
	case NVML_VALUE_UINT:
		*ret = v->value.ui;
		if (v->value.ui == NONE)
			return false;
		break;
	case NVML_VALUE_ULONG:
		*ret = (double)v->value.ul;
		break;
	case NVML_VALUE_ULONGLONG:
		*ret = (double)v->value.ull;
		break;
	case NVML_VALUE_SLONGLONG:
		*ret = (double)v->value.sll;
		break;
	case NVML_VALUE_SINT:
		*ret = v->value.si;
		break;
	default:
		return false;
	}
	return *ret >= 0 && *ret < 9e18; // false for NaN and for all bits set
}

static nvml_return read_values(const struct nvml_api *api, nvml_device d, const struct value_row *rows, size_t n,
                               struct device_sample *s)
{
	struct nvml_field_value values[FIELDS_MAX] = {0};
	// A library that skips a field leaves it unchanged: initialize it with an error, so that 0 is not taken for a
	// value.
	for (size_t i = 0; i < n; i++)
		values[i] = (struct nvml_field_value){.field_id = rows[i].id, .result = NVML_NOT_SUPPORTED};
	nvml_return r = CALL(api, field_values, d, (int)n, values);
	if (r != NVML_SUCCESS)
		return r;
	for (size_t i = 0; i < n; i++) {
		double v;
		if (value_number(&values[i], &v))
			set(s, rows[i].field, v * rows[i].scale);
		else if (nvml_result_is_lost(values[i].result))
			return values[i].result;
	}
	return NVML_SUCCESS;
}

// The library counts KiB; DCGM's field is the rate since the previous reading.
static nvml_return read_nvlink_rate(const struct nvml_api *api, nvml_device d, struct nvml_reader *reader,
                                    int64_t mono_ms, struct device_sample *s)
{
	struct nvml_field_value values[2] = {{.field_id = NVML_FIELD_NVLINK_DATA_TX},
	                                     {.field_id = NVML_FIELD_NVLINK_DATA_RX}};
	for (int i = 0; i < 2; i++) {
		values[i].scope_id = NVML_SCOPE_ALL_LINKS;
		values[i].result = NVML_NOT_SUPPORTED;
	}
	nvml_return r = CALL(api, field_values, d, 2, values);
	double tx, rx;
	if (r != NVML_SUCCESS || !value_number(&values[0], &tx) || !value_number(&values[1], &rx)) {
		reader->has_nvlink = false;
		return r;
	}
	uint64_t kib = (uint64_t)tx + (uint64_t)rx;
	int64_t dt_ms = mono_ms - reader->nvlink_ms;
	if (reader->has_nvlink && dt_ms > 0 && kib >= reader->nvlink_kib)
		set(s, FIELD_NVLINK_BANDWIDTH_TOTAL,
		    (double)(kib - reader->nvlink_kib) * 1000 / (double)dt_ms / BANDWIDTH_UNIT);
	reader->has_nvlink = true;
	reader->nvlink_ms = mono_ms;
	reader->nvlink_kib = kib;
	return NVML_SUCCESS;
}

// ---- the others ----
static nvml_return read_utilization(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	struct nvml_utilization u = {.gpu = NONE, .memory = NONE};
	nvml_return r = CALL(api, utilization, d, &u);
	if (r == NVML_SUCCESS) {
		set(s, FIELD_GPU_UTIL, u.gpu);
		set(s, FIELD_MEM_COPY_UTIL, u.memory);
	}
	return r;
}

// Sets the fields if the numbers are consistent. Otherwise the library writes another layout or has no value, and
// nothing is reported.
static bool set_memory(struct device_sample *s, enum field total_field, enum field used_field, enum field free_field,
                       unsigned long long total, unsigned long long used, unsigned long long free)
{
	if (total == 0 || !family_is_plausible(FIELD_FB_TOTAL, (double)(total / BYTES_PER_MIB)) || used > total ||
	    free > total)
		return false;
	sample_set_i64(s, total_field, (int64_t)(total / BYTES_PER_MIB));
	sample_set_i64(s, used_field, (int64_t)(used / BYTES_PER_MIB));
	sample_set_i64(s, free_field, (int64_t)(free / BYTES_PER_MIB));
	return true;
}

nvml_return nvml_read_memory(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2_VERSION};
	nvml_return r = CALL(api, memory_v2, d, &v2);
	if (r == NVML_SUCCESS && v2.reserved <= v2.total &&
	    set_memory(s, FIELD_FB_TOTAL, FIELD_FB_USED, FIELD_FB_FREE, v2.total, v2.used, v2.free)) {
		sample_set_i64(s, FIELD_FB_RESERVED, (int64_t)(v2.reserved / BYTES_PER_MIB));
		if (v2.total > v2.reserved) // used / (total - reserved), as in DCGM
			set(s, FIELD_FB_USED_PERCENT, (double)v2.used / (double)(v2.total - v2.reserved));
		return r;
	}
	if (nvml_result_is_lost(r))
		return r;
	// Drivers before 510 count reserved memory as used, and its size is unknown.
	struct nvml_memory v1 = {0};
	r = CALL(api, memory, d, &v1);
	if (r == NVML_SUCCESS)
		set_memory(s, FIELD_FB_TOTAL, FIELD_FB_USED, FIELD_FB_FREE, v1.total, v1.used, v1.free);
	return r;
}

static nvml_return read_bar1(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	struct nvml_bar1 m = {0};
	nvml_return r = CALL(api, bar1, d, &m);
	if (r == NVML_SUCCESS)
		set_memory(s, FIELD_BAR1_TOTAL, FIELD_BAR1_USED, FIELD_BAR1_FREE, m.total, m.used, m.free);
	return r;
}

static nvml_return read_limit_range(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned min_mw = NONE, max_mw = NONE;
	nvml_return r = CALL(api, power_limit_range, d, &min_mw, &max_mw);
	if (r == NVML_SUCCESS && min_mw != NONE && max_mw != NONE) {
		set(s, FIELD_POWER_LIMIT_MIN, min_mw * WATTS_PER_MW);
		set(s, FIELD_POWER_LIMIT_MAX, max_mw * WATTS_PER_MW);
	}
	return r;
}

static nvml_return read_remapped_rows(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned correctable = NONE, uncorrectable = NONE, pending = NONE, failed = NONE;
	nvml_return r = CALL(api, remapped_rows, d, &correctable, &uncorrectable, &pending, &failed);
	if (r == NVML_SUCCESS && correctable != NONE && uncorrectable != NONE && pending != NONE && failed != NONE) {
		sample_set_i64(s, FIELD_CORRECTABLE_REMAPPED_ROWS, correctable);
		sample_set_i64(s, FIELD_UNCORRECTABLE_REMAPPED_ROWS, uncorrectable);
		sample_set_i64(s, FIELD_ROW_REMAP_PENDING, pending != 0);
		sample_set_i64(s, FIELD_ROW_REMAP_FAILURE, failed != 0);
	}
	return r;
}

// As in DCGM: 0 for a GPU that is not virtual.
static nvml_return read_license(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	int mode = -1;
	nvml_return r = CALL(api, virtualization, d, &mode);
	if (r != NVML_SUCCESS || mode < 0)
		return r;
	struct nvml_licenses l = {0};
	if (mode == NVML_VIRTUALIZATION_GUEST) {
		r = CALL(api, licenses, d, &l);
		if (r != NVML_SUCCESS)
			return r;
	}
	bool licensed = false;
	for (size_t i = 0; i < l.n && i < NVML_LICENSE_FEATURES_MAX; i++)
		licensed |= l.features[i].state != 0;
	sample_set_i64(s, FIELD_VGPU_LICENSE_STATUS, licensed);
	return r;
}

// What is read equally often.
#define READINGS_MAX 3
struct batch {
	nvml_return (*readings[READINGS_MAX])(const struct nvml_api *, nvml_device, struct device_sample *);
	const struct number_row *numbers;
	const struct value_row *values;
	size_t n_numbers, n_values;
};
#define ROWS(often) often##_numbers, often##_values, COUNT(often##_numbers), COUNT(often##_values)
static const struct batch fast = {{read_utilization, nvml_read_memory}, ROWS(fast)},
                          costly = {{read_bar1}, ROWS(costly)},
                          slow = {{read_limit_range, read_remapped_rows, read_license}, ROWS(slow)};

// Returns NVML_SUCCESS, or the first result that concerns the whole device.
static nvml_return read_batch(const struct nvml_api *api, nvml_device d, const struct batch *b, struct device_sample *s)
{
	for (size_t i = 0; i < READINGS_MAX && b->readings[i]; i++) {
		nvml_return r = b->readings[i](api, d, s);
		if (is_grave(r))
			return r;
	}
	nvml_return r = read_numbers(api, d, b->numbers, b->n_numbers, s);
	if (r == NVML_SUCCESS)
		r = read_values(api, d, b->values, b->n_values, s);
	return is_grave(r) ? r : NVML_SUCCESS;
}

// Reads the fields of `k` again if `every_ms` have passed, and adds their last values to `s`.
static nvml_return read_kept(const struct nvml_api *api, nvml_device d, const struct batch *b, int64_t every_ms,
                             int64_t mono_ms, struct nvml_kept *k, struct device_sample *s)
{
	if (!k->is_read || mono_ms - k->read_ms >= every_ms) {
		k->values = (struct device_sample){.lost = false};
		nvml_return r = read_batch(api, d, b, &k->values);
		if (r != NVML_SUCCESS)
			return r;
		k->is_read = true;
		k->read_ms = mono_ms;
	}
	sample_add(s, &k->values);
	return NVML_SUCCESS;
}

nvml_return nvml_read_device(const struct nvml_api *api, nvml_device d, struct nvml_reader *reader, int64_t mono_ms,
                             struct device_sample *s)
{
	nvml_return r = read_batch(api, d, &fast, s);
	if (r == NVML_SUCCESS)
		r = read_nvlink_rate(api, d, reader, mono_ms, s);
	if (is_grave(r)) {
		*reader = (struct nvml_reader){.has_nvlink = false};
		return r;
	}
	// Not a single field: regardless of its results, the device does not respond.
	if (sample_count(s) == 0)
		return NVML_GPU_IS_LOST;
	r = read_kept(api, d, &costly, NVML_READ_COSTLY_MS, mono_ms, &reader->costly, s);
	if (r == NVML_SUCCESS)
		r = read_kept(api, d, &slow, NVML_READ_SLOW_MS, mono_ms, &reader->slow, s);
	return r;
}

// ---- profiling fields ----

#define PERCENT   0.01
#define MIB_PER_S 1048576.0

// GPM metric ids: NVML API reference, nvmlGpmMetricId_t. DCGM fields: DCGM's own use of GPM (DcgmGpmManager.cpp).
static const struct {
	enum field field;
	unsigned id;
	double scale;
} gpm_rows[] = {
        {FIELD_GR_ENGINE_ACTIVE, 1, PERCENT},
        {FIELD_SM_ACTIVE, 2, PERCENT},
        {FIELD_SM_OCCUPANCY, 3, PERCENT},
        {FIELD_PIPE_INT_ACTIVE, 4, PERCENT},
        {FIELD_PIPE_TENSOR_ACTIVE, 5, PERCENT},
        {FIELD_PIPE_TENSOR_DFMA_ACTIVE, 6, PERCENT},
        {FIELD_PIPE_TENSOR_HMMA_ACTIVE, 7, PERCENT},
        {FIELD_PIPE_TENSOR_IMMA_ACTIVE, 9, PERCENT},
        {FIELD_DRAM_ACTIVE, 10, PERCENT},
        {FIELD_PIPE_FP64_ACTIVE, 11, PERCENT},
        {FIELD_PIPE_FP32_ACTIVE, 12, PERCENT},
        {FIELD_PIPE_FP16_ACTIVE, 13, PERCENT},
        {FIELD_PCIE_TX_BYTES, 20, MIB_PER_S},
        {FIELD_PCIE_RX_BYTES, 21, MIB_PER_S},
        {FIELD_NVLINK_RX_BYTES, 60, MIB_PER_S},
        {FIELD_NVLINK_TX_BYTES, 61, MIB_PER_S},
};
_Static_assert(COUNT(gpm_rows) <= NVML_GPM_METRICS_MAX, "all are asked for at once");

static nvml_return prepare(const struct nvml_api *api, nvml_device gpu, struct nvml_gpm *g)
{
	if (!api->gpm_support || !api->gpm_sample_alloc || !api->gpm_sample_free || !api->gpm_metrics_get)
		return NVML_FUNCTION_NOT_FOUND;
	struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
	nvml_return r = api->gpm_support(gpu, &support);
	if (r != NVML_SUCCESS)
		return r;
	g->asked = true;
	g->supported = support.supported != 0;
	if (!g->supported)
		return NVML_NOT_SUPPORTED;
	r = api->gpm_sample_alloc(&g->previous);
	if (r == NVML_SUCCESS)
		r = api->gpm_sample_alloc(&g->current);
	if (r != NVML_SUCCESS)
		nvml_gpm_done(api, g);
	return r;
}

static nvml_return take_gpm_sample(const struct nvml_api *api, nvml_device gpu, int instance, nvml_gpm_sample sample)
{
	if (instance == NVML_WHOLE_GPU)
		return api->gpm_sample_get ? api->gpm_sample_get(gpu, sample) : NVML_FUNCTION_NOT_FOUND;
	return api->gpm_mig_sample_get ? api->gpm_mig_sample_get(gpu, (unsigned)instance, sample)
	                               : NVML_FUNCTION_NOT_FOUND;
}

static nvml_return compare(const struct nvml_api *api, struct nvml_gpm *g)
{
	struct nvml_gpm_metrics m = {
	        .version = NVML_GPM_VERSION, .n = COUNT(gpm_rows), .sample1 = g->previous, .sample2 = g->current};
	// A library that skips a metric leaves its result unchanged: initialize it with an error, so that 0 is not
	// taken for a value.
	for (size_t i = 0; i < COUNT(gpm_rows); i++) {
		m.metrics[i].id = gpm_rows[i].id;
		m.metrics[i].result = NVML_NOT_SUPPORTED;
	}
	nvml_return r = api->gpm_metrics_get(&m);
	g->values = (struct device_sample){.lost = false};
	for (size_t i = 0; r == NVML_SUCCESS && i < COUNT(gpm_rows); i++)
		if (m.metrics[i].result == NVML_SUCCESS)
			sample_offer(&g->values, gpm_rows[i].field, m.metrics[i].value * gpm_rows[i].scale);
	return r;
}

nvml_return nvml_gpm_read(const struct nvml_api *api, nvml_device gpu, int instance, struct nvml_gpm *g,
                          int64_t mono_ms, struct device_sample *s)
{
	if (g->asked && !g->supported)
		return NVML_NOT_SUPPORTED;
	nvml_return r = g->previous ? NVML_SUCCESS : prepare(api, gpu, g);
	if (r != NVML_SUCCESS)
		return r;
	int64_t apart_ms = mono_ms - g->previous_ms;
	if (g->seeded && apart_ms >= 0 && apart_ms < NVML_GPM_APART_MIN_MS) {
		sample_add(s, &g->values);
		return NVML_SUCCESS;
	}
	r = take_gpm_sample(api, gpu, instance, g->current);
	if (r != NVML_SUCCESS) {
		g->seeded = false;
		g->values = (struct device_sample){.lost = false};
		return r;
	}
	if (g->seeded && apart_ms >= NVML_GPM_APART_MIN_MS && apart_ms <= NVML_GPM_APART_MAX_MS)
		r = compare(api, g);
	else
		g->values = (struct device_sample){.lost = false};
	nvml_gpm_sample newest = g->current;
	g->current = g->previous;
	g->previous = newest;
	g->previous_ms = mono_ms;
	g->seeded = true;
	sample_add(s, &g->values);
	return r;
}

void nvml_gpm_done(const struct nvml_api *api, struct nvml_gpm *g)
{
	if (g->previous)
		api->gpm_sample_free(g->previous);
	if (g->current)
		api->gpm_sample_free(g->current);
	*g = (struct nvml_gpm){.asked = false};
}

// ---- processes ----

#define ROWS_MAX   256 // rows of one call
#define NAME_BYTES 64

typedef nvml_return list_fn(nvml_device, unsigned *n, struct nvml_process_info *);

static size_t add_list(list_fn *list, nvml_device d, struct nvml_process_info *rows, size_t n)
{
	struct nvml_process_info infos[ROWS_MAX] = {{.pid = 0}}; // the library may report more rows than it writes
	unsigned got = ROWS_MAX;
	if (!list || list(d, &got, infos) != NVML_SUCCESS)
		return n;
	for (unsigned i = 0; i < got && i < ROWS_MAX && n < 2 * ROWS_MAX; i++) {
		bool known = infos[i].memory_bytes == NVML_MEMORY_NOT_AVAILABLE || infos[i].pid == 0;
		// A process that uses compute and graphics is in both lists, with the same memory.
		for (size_t k = 0; k < n && !known; k++)
			known = rows[k].pid == infos[i].pid && rows[k].gpu_instance == infos[i].gpu_instance;
		if (!known)
			rows[n++] = infos[i];
	}
	return n;
}

static int by_memory(const void *a, const void *b)
{
	const struct nvml_process_info *x = a, *y = b;
	if (x->memory_bytes != y->memory_bytes)
		return x->memory_bytes < y->memory_bytes ? 1 : -1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void find_name(const char *proc_root, unsigned pid, char name[NAME_BYTES])
{
	char dir[SYSFS_PATH_BYTES], text[SYSFS_TEXT_BYTES];
	name[0] = '\0';
	if (snprintf(dir, sizeof dir, "%s/%u", proc_root, pid) < (int)sizeof dir && sysfs_read_text(dir, "comm", text))
		snprintf(name, NAME_BYTES, "%.60s", text);
}

void nvml_processes_render(const struct nvml_api *api, nvml_device d, const struct device *gpu, const char *proc_root,
                           struct buf *out, bool *opened)
{
	static const char family[] = "gpuscale_gpu_process_memory_bytes";
	struct nvml_process_info *rows = calloc(2 * ROWS_MAX, sizeof *rows);
	if (!rows)
		return;
	size_t n = add_list(api->compute_processes, d, rows, 0);
	n = add_list(api->graphics_processes, d, rows, n);
	qsort(rows, n, sizeof *rows, by_memory);
	for (size_t i = 0; i < n && i < NVML_PROCESSES_MAX; i++) {
		char name[NAME_BYTES];
		find_name(proc_root, rows[i].pid, name);
		if (!*opened)
			exposition_family(out, family, "GPU memory of a process (bytes).", METRIC_GAUGE);
		*opened = true;
		buf_printf(out, "%s{gpu=\"%" PRId32 "\",UUID=\"", family, gpu->index);
		exposition_label_value(out, gpu->uuid);
		if (rows[i].gpu_instance != NVML_NO_INSTANCE)
			buf_printf(out, "\",GPU_I_ID=\"%u", rows[i].gpu_instance);
		buf_printf(out, "\",pid=\"%u\",process=\"", rows[i].pid);
		exposition_label_value(out, name);
		buf_printf(out, "\"} %llu\n", rows[i].memory_bytes);
	}
	free(rows);
}
