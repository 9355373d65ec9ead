// SPDX-License-Identifier: Apache-2.0
#include "exporter/families.h"

#include "base/base.h"

static const struct family families[] = {
#define ROW(field, name, name_4_9, factor, id, type, kind, scope, unit, window, accumulates, help)                     \
	[field] = {name,           name_4_9, factor, id,          METRIC_##type, FIELD_##kind,                         \
	           FAMILY_##scope, unit,     window, accumulates, help},
        FAMILIES(ROW)
#undef ROW
};
_Static_assert(sizeof families / sizeof families[0] == FIELD__COUNT, "one row per field");

const struct family *family_of(enum field f)
{
	assert(f >= 0 && f < FIELD__COUNT);
	return &families[f];
}

bool family_is_plausible(enum field f, double v)
{
	static const struct {
		const char *unit;
		double min, max;
	} ranges[] = {{"%", 0, 100},         {"C", -100, 200}, {"W", 0, 1e6},          {"MHz", 0, 1e6},
	              {"0-15", 0, 15},       {"0-1", 0, 1.1},  {"0/1", 0, 1},          {"lanes", 0, 256},
	              {"generation", 0, 32}, {"B/s", 0, 1e13}, {"code", 0, INT32_MAX}, {"MiB", 0, 1e9}};
	double min = 0, max = 9e18; // must fit 64 bits
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
		if (strcmp(families[f].unit, ranges[i].unit) == 0) {
			min = ranges[i].min;
			max = ranges[i].max;
		}
	if (f == FIELD_FAN_SPEED)
		max = 1000;          // relative to the requested speed, which can exceed 100 %
	return v >= min && v <= max; // false for NaN
}

enum field family_find(const char *name)
{
	for (int f = 0; f < FIELD__COUNT; f++)
		if (strcmp(families[f].name, name) == 0)
			return (enum field)f;
	return FIELD__COUNT;
}

enum field family_find_id(int dcgm_id)
{
	for (int f = 0; f < FIELD__COUNT; f++)
		if (families[f].dcgm_id == dcgm_id && dcgm_id != 0)
			return (enum field)f;
	return FIELD__COUNT;
}

const char *family_closest_name(const char *name)
{
	const char *names[FIELD__COUNT];
	for (int f = 0; f < FIELD__COUNT; f++)
		names[f] = families[f].name;
	return num_closest_name(name, names, FIELD__COUNT);
}

// ---- names ----

#define GAUGE   OTEL_GAUGE
#define COUNTER OTEL_COUNTER
#define UPDOWN  OTEL_UP_DOWN_COUNTER
// clang-format off
#define METRIC(factor, name, prometheus, instrument, unit, help, ...) {name, prometheus, factor, instrument, unit, help, {__VA_ARGS__}}
#define LOCATION(where) {"hw.sensor_location", "hw_sensor_location", where}
#define OF_GPU          {"hw.type", "hw_type", "gpu"}
#define UTILIZATION(factor, task)         METRIC(factor, "hw.gpu.utilization", "hw_gpu_utilization_ratio", GAUGE, "1", "Share of time spent in a task (0-1).", {"hw.gpu.task", "hw_gpu_task", task})
#define TEMPERATURE(factor, where)        METRIC(factor, "hw.temperature", "hw_temperature_celsius", GAUGE, "Cel", "Temperature (C).", LOCATION(where))
#define TEMPERATURE_LIMIT(factor, limit)  METRIC(factor, "hw.temperature.limit", "hw_temperature_limit_celsius", GAUGE, "Cel", "Limit of the temperature (C).", {"hw.limit_type", "hw_limit_type", limit}, LOCATION("gpu"))
#define ERRORS(factor, type)              METRIC(factor, "hw.errors", "hw_errors_total", COUNTER, "{error}", "Memory errors since the last reset.", {"error.type", "error_type", type}, OF_GPU)

// One row per family that the semantic conventions have: its metric there and the factor of its value. Sources:
// open-telemetry/semantic-conventions docs/hardware/{gpu,common,temperature}.md; the names of Prometheus:
// OpenTelemetry, "Prometheus and OpenMetrics compatibility".
static const struct otel_metric otel[FIELD__COUNT] = {
	[FIELD_MEMORY_TEMP]     = TEMPERATURE(1, "memory"),
	[FIELD_GPU_TEMP]        = TEMPERATURE(1, "gpu"),
	[FIELD_SLOWDOWN_TEMP]   = TEMPERATURE_LIMIT(1, "high.degraded"),
	[FIELD_SHUTDOWN_TEMP]   = TEMPERATURE_LIMIT(1, "high.critical"),
	[FIELD_POWER_USAGE]     = METRIC(1, "hw.power", "hw_power_watts", GAUGE, "W", "Power draw (W).", OF_GPU),
	[FIELD_TOTAL_ENERGY]    = METRIC(1e-3, "hw.energy", "hw_energy_joules_total", COUNTER, "J", "Energy used since the driver was loaded (J).", OF_GPU),
	[FIELD_GPU_UTIL]        = UTILIZATION(DCGM_CENT, "general"),
	[FIELD_ENC_UTIL]        = UTILIZATION(DCGM_CENT, "encoder"),
	[FIELD_DEC_UTIL]        = UTILIZATION(DCGM_CENT, "decoder"),
	[FIELD_FB_TOTAL]        = METRIC(DCGM_MIB, "hw.gpu.memory.limit", "hw_gpu_memory_limit_bytes", UPDOWN, "By", "Device memory (bytes).", {NULL, NULL, NULL}),
	[FIELD_FB_USED]         = METRIC(DCGM_MIB, "hw.gpu.memory.usage", "hw_gpu_memory_usage_bytes", UPDOWN, "By", "Device memory used (bytes).", {NULL, NULL, NULL}),
	[FIELD_FB_USED_PERCENT] = METRIC(1, "hw.gpu.memory.utilization", "hw_gpu_memory_utilization_ratio", GAUGE, "1", "Share of the usable device memory that is used (0-1).", {NULL, NULL, NULL}),
	[FIELD_ECC_SBE_VOL]     = ERRORS(1, "corrected"),
	[FIELD_ECC_DBE_VOL]     = ERRORS(1, "uncorrected"),
};
// clang-format on

const struct otel_metric *naming_otel_of(enum field f)
{
	assert(f >= 0 && f < FIELD__COUNT);
	return otel[f].name ? &otel[f] : NULL;
}

struct naming_family naming_family_of(enum naming n, enum field f)
{
	const struct family *fam = family_of(f);
	const struct otel_metric *metric = naming_otel_of(f);
	struct naming_family out = {.name = fam->name, .factor = 1, .type = fam->type};
	if (n == NAMING_OTEL && metric) {
		out.name = metric->prometheus;
		out.factor = metric->factor;
		out.type = metric->instrument == OTEL_COUNTER ? METRIC_COUNTER : METRIC_GAUGE;
		out.otel = metric;
	} else if (n != NAMING_LEGACY && family_of(f)->name_4_9) {
		out.name = family_of(f)->name_4_9;
		out.factor = family_of(f)->factor_4_9;
		if (f == FIELD_NVLINK_BANDWIDTH_TOTAL)
			out.type = METRIC_GAUGE; // a rate, which DCGM called a counter
	}
	return out;
}

void naming_write_help(char *out, size_t size, const struct naming_family *nf, enum field f, const char *help)
{
	static const struct {
		const char *unit, *base;
	} units[] = {{"MHz", "Hz"}, {"MiB", "bytes"}, {"%", "0-1"}, {"mJ", "J"}, {"1000 KiB/s", "bytes per second"}};
	const char *unit = family_of(f)->unit, *parenthesis = strrchr(help, '(');
	int len = (int)(parenthesis && parenthesis > help ? (size_t)(parenthesis - help) - 1 : strcspn(help, "."));
	snprintf(out, size, "%s", nf->otel ? nf->otel->help : help);
	for (size_t i = 0; !nf->otel && nf->factor != 1 && i < sizeof units / sizeof units[0]; i++)
		if (strcmp(unit, units[i].unit) == 0)
			snprintf(out, size, "%.*s (%s).", len, help, units[i].base);
}

enum field naming_find(const char *name, double *ret_factor)
{
	*ret_factor = 1;
	enum field f = family_find(name);
	if (f != FIELD__COUNT)
		return f;
	for (f = 0; f < FIELD__COUNT; f++)
		if (family_of(f)->name_4_9 && strcmp(family_of(f)->name_4_9, name) == 0) {
			*ret_factor = family_of(f)->factor_4_9;
			return f;
		}
	return FIELD__COUNT;
}
