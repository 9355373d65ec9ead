// SPDX-License-Identifier: Apache-2.0
#include "exporter/nvml/nvml_read.h"

#include <string.h>

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

// Drops a value that no device can have: drivers succeed with all bits set, or with "unknown" as a number.
static void set(struct device_sample *s, enum field f, double v)
{
	if (!family_is_plausible(f, v)) {
		s->implausible += v != NONE;
		return;
	}
	if (family_of(f)->kind == FIELD_DOUBLE)
		sample_set_f64(s, f, v);
	else
		sample_set_i64(s, f, (int64_t)v);
}

// Kept as an integer, where a double would round.
static void set_u64(struct device_sample *s, enum field f, unsigned long long v)
{
	if (family_is_plausible(f, (double)v))
		sample_set_i64(s, f, (int64_t)v);
	else
		s->implausible += v != NONE_U64;
}

// ---- functions that give one unsigned number ----
struct number_row {
	enum field field;
	size_t function; // in struct nvml_api
	double scale;
};
static const struct number_row fast_numbers[] = {
        {FIELD_POWER_USAGE, API(power), WATTS_PER_MW},
        {FIELD_ENFORCED_POWER_LIMIT, API(power_limit_enforced), WATTS_PER_MW},
        {FIELD_PSTATE, API(pstate), 1},
        {FIELD_FAN_SPEED, API(fan_speed), 1},
        {FIELD_PCIE_LINK_GEN, API(link_gen), 1},
        {FIELD_PCIE_LINK_WIDTH, API(link_width), 1},
};
static const struct number_row costly_numbers[] = {
        {FIELD_PCIE_REPLAY, API(pcie_replay), 1},
};
static const struct number_row slow_numbers[] = {
        {FIELD_POWER_LIMIT, API(power_limit), WATTS_PER_MW},
        {FIELD_POWER_LIMIT_DEFAULT, API(power_limit_default), WATTS_PER_MW},
        {FIELD_PCIE_MAX_LINK_GEN, API(max_link_gen), 1},
        {FIELD_PCIE_MAX_LINK_WIDTH, API(max_link_width), 1},
};

static nvml_return read_numbers(const struct nvml_api *api, nvml_device d, const struct number_row *rows, size_t n,
                                struct device_sample *s)
{
	for (size_t i = 0; i < n; i++) {
		nvml_return (*function)(nvml_device, unsigned *);
		memcpy(&function, (const char *)api + rows[i].function, sizeof function);
		unsigned v = NONE;
		nvml_return r = function ? function(d, &v) : NVML_FUNCTION_NOT_FOUND;
		if (r == NVML_SUCCESS && v != NONE)
			set(s, rows[i].field, v * rows[i].scale);
		else if (nvml_result_is_lost(r) || nvml_result_is_fatal(r))
			return r;
	}
	return NVML_SUCCESS;
}

// ---- functions that give one unsigned number for a sensor or clock ----
struct sensor_row {
	enum field field;
	size_t function; // in struct nvml_api
	int sensor;
};
static const struct sensor_row fast_sensors[] = {
        {FIELD_GPU_TEMP, API(temperature), NVML_TEMPERATURE_GPU},
        {FIELD_SM_CLOCK, API(clock), NVML_CLOCK_SM},
        {FIELD_MEM_CLOCK, API(clock), NVML_CLOCK_MEM},
        {FIELD_VIDEO_CLOCK, API(clock), NVML_CLOCK_VIDEO},
};
static const struct sensor_row slow_sensors[] = {
        {FIELD_MAX_SM_CLOCK, API(max_clock), NVML_CLOCK_SM},
        {FIELD_MAX_MEM_CLOCK, API(max_clock), NVML_CLOCK_MEM},
        {FIELD_SLOWDOWN_TEMP, API(threshold), NVML_THRESHOLD_SLOWDOWN},
        {FIELD_SHUTDOWN_TEMP, API(threshold), NVML_THRESHOLD_SHUTDOWN},
};

static nvml_return read_sensors(const struct nvml_api *api, nvml_device d, const struct sensor_row *rows, size_t n,
                                struct device_sample *s)
{
	for (size_t i = 0; i < n; i++) {
		nvml_return (*function)(nvml_device, int, unsigned *);
		memcpy(&function, (const char *)api + rows[i].function, sizeof function);
		unsigned v = NONE;
		nvml_return r = function ? function(d, rows[i].sensor, &v) : NVML_FUNCTION_NOT_FOUND;
		if (r == NVML_SUCCESS && v != NONE)
			set(s, rows[i].field, v);
		else if (nvml_result_is_lost(r) || nvml_result_is_fatal(r))
			return r;
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

static nvml_return read_encoder(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned percent = NONE, period_us = 0;
	nvml_return r = CALL(api, encoder, d, &percent, &period_us);
	if (r == NVML_SUCCESS)
		set(s, FIELD_ENC_UTIL, percent);
	return r;
}

static nvml_return read_decoder(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned percent = NONE, period_us = 0;
	nvml_return r = CALL(api, decoder, d, &percent, &period_us);
	if (r == NVML_SUCCESS)
		set(s, FIELD_DEC_UTIL, percent);
	return r;
}

static int64_t mib(unsigned long long bytes)
{
	return (int64_t)(bytes / BYTES_PER_MIB);
}

// True if the numbers are consistent. Otherwise the library writes another layout or has no value, and nothing is
// reported.
static bool is_memory(unsigned long long total, unsigned long long used, unsigned long long free)
{
	return total > 0 && family_is_plausible(FIELD_FB_TOTAL, (double)(total / BYTES_PER_MIB)) && used <= total &&
	       free <= total;
}

// used / (total - reserved), as in DCGM. Absent if `reserved` is unknown.
static void set_used_ratio(struct device_sample *s, const struct nvml_memory_v2 *m)
{
	if (m->total > m->reserved)
		set(s, FIELD_FB_USED_PERCENT, (double)m->used / (double)(m->total - m->reserved));
}

nvml_return nvml_read_memory(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2_VERSION};
	nvml_return r = CALL(api, memory_v2, d, &v2);
	if (r == NVML_SUCCESS && is_memory(v2.total, v2.used, v2.free) && v2.reserved <= v2.total) {
		sample_set_i64(s, FIELD_FB_TOTAL, mib(v2.total));
		sample_set_i64(s, FIELD_FB_FREE, mib(v2.free));
		sample_set_i64(s, FIELD_FB_USED, mib(v2.used));
		sample_set_i64(s, FIELD_FB_RESERVED, mib(v2.reserved));
		set_used_ratio(s, &v2);
		return r;
	}
	if (nvml_result_is_lost(r))
		return r;
	// Drivers before 510 count reserved memory as used, and its size is unknown.
	struct nvml_memory v1 = {0};
	r = CALL(api, memory, d, &v1);
	if (r == NVML_SUCCESS && is_memory(v1.total, v1.used, v1.free)) {
		sample_set_i64(s, FIELD_FB_TOTAL, mib(v1.total));
		sample_set_i64(s, FIELD_FB_FREE, mib(v1.free));
		sample_set_i64(s, FIELD_FB_USED, mib(v1.used));
	}
	return r;
}

static nvml_return read_bar1(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	struct nvml_bar1 m = {0};
	nvml_return r = CALL(api, bar1, d, &m);
	if (r == NVML_SUCCESS && is_memory(m.total, m.used, m.free)) {
		sample_set_i64(s, FIELD_BAR1_TOTAL, mib(m.total));
		sample_set_i64(s, FIELD_BAR1_USED, mib(m.used));
		sample_set_i64(s, FIELD_BAR1_FREE, mib(m.free));
	}
	return r;
}

static nvml_return read_energy(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned long long mj = NONE_U64;
	nvml_return r = CALL(api, energy, d, &mj);
	if (r == NVML_SUCCESS)
		set_u64(s, FIELD_TOTAL_ENERGY, mj);
	return r;
}

static nvml_return read_event_reasons(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned long long bits = NONE_U64;
	nvml_return r = CALL(api, event_reasons, d, &bits);
	if (r == NVML_SUCCESS)
		set_u64(s, FIELD_CLOCKS_EVENT_REASONS, bits);
	return r;
}

static nvml_return read_ecc(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	static const struct {
		enum field field;
		int error, counter;
	} rows[] = {{FIELD_ECC_SBE_VOL, NVML_MEMORY_ERROR_SINGLE, NVML_ECC_VOLATILE},
	            {FIELD_ECC_DBE_VOL, NVML_MEMORY_ERROR_DOUBLE, NVML_ECC_VOLATILE},
	            {FIELD_ECC_SBE_AGG, NVML_MEMORY_ERROR_SINGLE, NVML_ECC_AGGREGATE},
	            {FIELD_ECC_DBE_AGG, NVML_MEMORY_ERROR_DOUBLE, NVML_ECC_AGGREGATE}};
	nvml_return r = NVML_SUCCESS;
	for (size_t i = 0; i < COUNT(rows) && !nvml_result_is_lost(r); i++) {
		unsigned long long n = NONE_U64;
		r = CALL(api, ecc_errors, d, rows[i].error, rows[i].counter, &n);
		if (r == NVML_SUCCESS)
			set_u64(s, rows[i].field, n);
	}
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

typedef nvml_return reading_fn(const struct nvml_api *, nvml_device, struct device_sample *);
static reading_fn *const fast_readings[] = {read_utilization, nvml_read_memory,   read_encoder,
                                            read_decoder,     read_event_reasons, read_ecc};
static reading_fn *const costly_readings[] = {read_energy, read_bar1};
static reading_fn *const slow_readings[] = {read_limit_range, read_remapped_rows, read_license};

static nvml_return read_each(const struct nvml_api *api, nvml_device d, reading_fn *const *readings, size_t n,
                             struct device_sample *s)
{
	for (size_t i = 0; i < n; i++) {
		nvml_return r = readings[i](api, d, s);
		if (nvml_result_is_lost(r) || nvml_result_is_fatal(r))
			return r;
	}
	return NVML_SUCCESS;
}

static nvml_return first_grave(const nvml_return *results, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (nvml_result_is_lost(results[i]) || nvml_result_is_fatal(results[i]))
			return results[i];
	return NVML_SUCCESS;
}

static nvml_return read_costly(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	const nvml_return results[] = {
	        read_each(api, d, costly_readings, COUNT(costly_readings), s),
	        read_numbers(api, d, costly_numbers, COUNT(costly_numbers), s),
	        read_values(api, d, costly_values, COUNT(costly_values), s),
	};
	return first_grave(results, COUNT(results));
}

static nvml_return read_slow(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	const nvml_return results[] = {
	        read_each(api, d, slow_readings, COUNT(slow_readings), s),
	        read_numbers(api, d, slow_numbers, COUNT(slow_numbers), s),
	        read_sensors(api, d, slow_sensors, COUNT(slow_sensors), s),
	        read_values(api, d, slow_values, COUNT(slow_values), s),
	};
	return first_grave(results, COUNT(results));
}

// Reads the fields of `k` again if `every_ms` have passed, and adds their last values to `s`.
static nvml_return read_kept(const struct nvml_api *api, nvml_device d, reading_fn *read, int64_t every_ms,
                             int64_t mono_ms, struct nvml_kept *k, struct device_sample *s)
{
	if (!k->is_read || mono_ms - k->read_ms >= every_ms) {
		k->values = (struct device_sample){.lost = false};
		nvml_return r = read(api, d, &k->values);
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
	nvml_return r = read_each(api, d, fast_readings, COUNT(fast_readings), s);
	if (r == NVML_SUCCESS)
		r = read_numbers(api, d, fast_numbers, COUNT(fast_numbers), s);
	if (r == NVML_SUCCESS)
		r = read_sensors(api, d, fast_sensors, COUNT(fast_sensors), s);
	if (r == NVML_SUCCESS)
		r = read_values(api, d, fast_values, COUNT(fast_values), s);
	if (!nvml_result_is_lost(r) && !nvml_result_is_fatal(r))
		r = read_nvlink_rate(api, d, reader, mono_ms, s);
	if (nvml_result_is_lost(r) || nvml_result_is_fatal(r)) {
		*reader = (struct nvml_reader){.has_nvlink = false};
		return r;
	}
	// Not a single field: regardless of its results, the device does not respond.
	if (sample_count(s) == 0)
		return NVML_GPU_IS_LOST;
	r = read_kept(api, d, read_costly, NVML_READ_COSTLY_MS, mono_ms, &reader->costly, s);
	if (r == NVML_SUCCESS)
		r = read_kept(api, d, read_slow, NVML_READ_SLOW_MS, mono_ms, &reader->slow, s);
	return r;
}
