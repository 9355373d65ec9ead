// SPDX-License-Identifier: Apache-2.0
#include "exporter/naming.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MHZ  1e6
#define MIB  1048576.0
#define CENT 0.01

#define GAUGE   OTEL_GAUGE
#define COUNTER OTEL_COUNTER
#define UPDOWN  OTEL_UP_DOWN_COUNTER
#define NONE                                                                                                           \
	{                                                                                                              \
		.name = NULL                                                                                           \
	}
// clang-format off
#define METRIC(name, instrument, unit, help, ...) {name, instrument, unit, help, {__VA_ARGS__}}
#define UTILIZATION(task)         METRIC("hw.gpu.utilization", GAUGE, "1", "Share of time spent in a task (0-1).", {"hw.gpu.task", task})
#define TEMPERATURE(where)        METRIC("hw.temperature", GAUGE, "Cel", "Temperature (C).", {"hw.sensor_location", where})
#define TEMPERATURE_LIMIT(limit)  METRIC("hw.temperature.limit", GAUGE, "Cel", "Limit of the temperature (C).", {"hw.limit_type", limit}, {"hw.sensor_location", "gpu"})
#define ERRORS(type)              METRIC("hw.errors", COUNTER, "{error}", "Memory errors since the last reset.", {"error.type", type}, {"hw.type", "gpu"})

// One row per family whose name depends on the naming: its name in dcgm-exporter 4.9, the factor of its value there, the
// metric of the semantic conventions, the factor there. Every other family has one name. Names of 4.9: DCGM 4.7's
// dcgm_fields.h and its table of deprecated names (1600 and above: fields in base units); the violation counters keep
// their names, which DCGM 4.7 still has. Conventions: open-telemetry/semantic-conventions docs/hardware/{gpu,common,temperature}.md.
struct row {
	const char *name_4_9; // NULL: as in the legacy naming
	double factor_4_9;
	struct otel_metric otel;
	double factor_otel;
};
static const struct row rows[FIELD__COUNT] = {
	[FIELD_SM_CLOCK]                    = {"DCGM_FI_DEV_SM_CLOCK_HERTZ", MHZ, NONE, 0},
	[FIELD_MEM_CLOCK]                   = {"DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", MHZ, NONE, 0},
	[FIELD_VIDEO_CLOCK]                 = {"DCGM_FI_DEV_VIDEO_CLOCK_HERTZ", MHZ, NONE, 0},
	[FIELD_MAX_SM_CLOCK]                = {"DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ", MHZ, NONE, 0},
	[FIELD_MAX_MEM_CLOCK]               = {"DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ", MHZ, NONE, 0},
	[FIELD_MEMORY_TEMP]                 = {"DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", 1, TEMPERATURE("memory"), 1},
	[FIELD_GPU_TEMP]                    = {"DCGM_FI_DEV_GPU_TEMP_CELSIUS", 1, TEMPERATURE("gpu"), 1},
	[FIELD_SLOWDOWN_TEMP]               = {"DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS", 1, TEMPERATURE_LIMIT("high.degraded"), 1},
	[FIELD_SHUTDOWN_TEMP]               = {"DCGM_FI_DEV_GPU_TEMP_SHUTDOWN_CELSIUS", 1, TEMPERATURE_LIMIT("high.critical"), 1},
	[FIELD_POWER_USAGE]                 = {"DCGM_FI_DEV_BOARD_POWER_WATTS", 1, METRIC("hw.power", GAUGE, "W", "Power draw (W).", {"hw.type", "gpu"}), 1},
	[FIELD_POWER_USAGE_INSTANT]         = {"DCGM_FI_DEV_BOARD_POWER_RAW_WATTS", 1, NONE, 0},
	[FIELD_TOTAL_ENERGY]                = {"DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 1e-3, METRIC("hw.energy", COUNTER, "J", "Energy used since the driver was loaded (J).", {"hw.type", "gpu"}), 1e-3},
	[FIELD_POWER_LIMIT]                 = {"DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS", 1, NONE, 0},
	[FIELD_POWER_LIMIT_MIN]             = {"DCGM_FI_DEV_BOARD_POWER_LIMIT_MIN_WATTS", 1, NONE, 0},
	[FIELD_POWER_LIMIT_MAX]             = {"DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS", 1, NONE, 0},
	[FIELD_POWER_LIMIT_DEFAULT]         = {"DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS", 1, NONE, 0},
	[FIELD_ENFORCED_POWER_LIMIT]        = {"DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS", 1, NONE, 0},
	[FIELD_PSTATE]                      = {"DCGM_FI_DEV_GPU_PSTATE", 1, NONE, 0},
	[FIELD_FAN_SPEED]                   = {"DCGM_FI_DEV_FAN_SPEED_RATIO", CENT, NONE, 0},
	[FIELD_PCIE_REPLAY]                 = {"DCGM_FI_DEV_PCIE_REPLAY_TOTAL", 1, NONE, 0},
	[FIELD_GPU_UTIL]                    = {"DCGM_FI_DEV_GPU_UTIL_RATIO", CENT, UTILIZATION("general"), CENT},
	[FIELD_MEM_COPY_UTIL]               = {"DCGM_FI_DEV_MEMORY_UTIL_RATIO", CENT, NONE, 0},
	[FIELD_ENC_UTIL]                    = {"DCGM_FI_DEV_ENC_UTIL_RATIO", CENT, UTILIZATION("encoder"), CENT},
	[FIELD_DEC_UTIL]                    = {"DCGM_FI_DEV_DEC_UTIL_RATIO", CENT, UTILIZATION("decoder"), CENT},
	[FIELD_XID_ERRORS]                  = {"DCGM_FI_DEV_XID_ERROR", 1, NONE, 0},
	[FIELD_FB_TOTAL]                    = {"DCGM_FI_DEV_FB_CAPACITY_BYTES", MIB, METRIC("hw.gpu.memory.limit", UPDOWN, "By", "Device memory (bytes).", {NULL, NULL}), MIB},
	[FIELD_FB_FREE]                     = {"DCGM_FI_DEV_FB_FREE_BYTES", MIB, NONE, 0},
	[FIELD_FB_USED]                     = {"DCGM_FI_DEV_FB_USED_BYTES", MIB, METRIC("hw.gpu.memory.usage", UPDOWN, "By", "Device memory used (bytes).", {NULL, NULL}), MIB},
	[FIELD_FB_RESERVED]                 = {"DCGM_FI_DEV_FB_RESERVED_BYTES", MIB, NONE, 0},
	[FIELD_FB_USED_PERCENT]             = {"DCGM_FI_DEV_FB_USED_RATIO", 1, METRIC("hw.gpu.memory.utilization", GAUGE, "1", "Share of the usable device memory that is used (0-1).", {NULL, NULL}), 1},
	[FIELD_BAR1_TOTAL]                  = {"DCGM_FI_DEV_BAR1_CAPACITY_BYTES", MIB, NONE, 0},
	[FIELD_BAR1_USED]                   = {"DCGM_FI_DEV_BAR1_USED_BYTES", MIB, NONE, 0},
	[FIELD_BAR1_FREE]                   = {"DCGM_FI_DEV_BAR1_FREE_BYTES", MIB, NONE, 0},
	[FIELD_ECC_SBE_VOL]                 = {NULL, 1, ERRORS("corrected"), 1},
	[FIELD_ECC_DBE_VOL]                 = {NULL, 1, ERRORS("uncorrected"), 1},
	[FIELD_RETIRED_SBE]                 = {"DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL", 1, NONE, 0},
	[FIELD_RETIRED_DBE]                 = {"DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL", 1, NONE, 0},
	[FIELD_RETIRED_PENDING]             = {"DCGM_FI_DEV_PAGE_RETIRED_PENDING", 1, NONE, 0},
	[FIELD_UNCORRECTABLE_REMAPPED_ROWS] = {"DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", 1, NONE, 0},
	[FIELD_CORRECTABLE_REMAPPED_ROWS]   = {"DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", 1, NONE, 0},
	[FIELD_ROW_REMAP_FAILURE]           = {"DCGM_FI_DEV_ROW_REMAP_FAILED", 1, NONE, 0},
	[FIELD_NVLINK_CRC_FLIT_ERRORS]      = {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL", 1, NONE, 0},
	[FIELD_NVLINK_CRC_DATA_ERRORS]      = {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL", 1, NONE, 0},
	[FIELD_NVLINK_REPLAY_ERRORS]        = {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL", 1, NONE, 0},
	[FIELD_NVLINK_RECOVERY_ERRORS]      = {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL", 1, NONE, 0},
	// DCGM divides KiB/s by 1000 under the old name, and multiplies by 1024 under the new one.
	[FIELD_NVLINK_BANDWIDTH_TOTAL]      = {"DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", 1024000, NONE, 0},
	[FIELD_GR_ENGINE_ACTIVE]            = {"DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 1, NONE, 0},
	[FIELD_SM_ACTIVE]                   = {"DCGM_FI_PROF_SM_UTIL_RATIO", 1, NONE, 0},
	[FIELD_SM_OCCUPANCY]                = {"DCGM_FI_PROF_SM_OCCUPANCY_RATIO", 1, NONE, 0},
	[FIELD_PIPE_TENSOR_ACTIVE]          = {"DCGM_FI_PROF_TENSOR_UTIL_RATIO", 1, NONE, 0},
	[FIELD_DRAM_ACTIVE]                 = {"DCGM_FI_PROF_DRAM_UTIL_RATIO", 1, NONE, 0},
	[FIELD_PIPE_FP64_ACTIVE]            = {"DCGM_FI_PROF_FP64_UTIL_RATIO", 1, NONE, 0},
	[FIELD_PIPE_FP32_ACTIVE]            = {"DCGM_FI_PROF_FP32_UTIL_RATIO", 1, NONE, 0},
	[FIELD_PIPE_FP16_ACTIVE]            = {"DCGM_FI_PROF_FP16_UTIL_RATIO", 1, NONE, 0},
	[FIELD_PIPE_TENSOR_IMMA_ACTIVE]     = {"DCGM_FI_PROF_IMMA_UTIL_RATIO", 1, NONE, 0},
	[FIELD_PIPE_TENSOR_HMMA_ACTIVE]     = {"DCGM_FI_PROF_HMMA_UTIL_RATIO", 1, NONE, 0},
	[FIELD_PIPE_TENSOR_DFMA_ACTIVE]     = {"DCGM_FI_PROF_DFMA_UTIL_RATIO", 1, NONE, 0},
	[FIELD_PIPE_INT_ACTIVE]             = {"DCGM_FI_PROF_INT_UTIL_RATIO", 1, NONE, 0},
};
// clang-format on

// How Prometheus names the units of the conventions (OpenTelemetry: "Prometheus and OpenMetrics compatibility").
static const char *unit_suffix(const struct otel_metric *m)
{
	static const struct {
		const char *unit, *suffix;
	} suffixes[] = {{"By", "_bytes"}, {"Cel", "_celsius"}, {"J", "_joules"}, {"W", "_watts"}};
	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
		if (strcmp(m->unit, suffixes[i].unit) == 0)
			return suffixes[i].suffix;
	return strcmp(m->unit, "1") == 0 && m->instrument == OTEL_GAUGE ? "_ratio" : "";
}

static void write_underscored(char *out, size_t size, const char *name)
{
	snprintf(out, size, "%s", name);
	for (char *p = out; (p = strchr(p, '.'));)
		*p = '_';
}

void naming_prometheus_name(const struct otel_metric *m, char out[NAMING_NAME_BYTES])
{
	write_underscored(out, NAMING_NAME_BYTES, m->name);
	size_t len = strlen(out);
	snprintf(out + len, NAMING_NAME_BYTES - len, "%s%s", unit_suffix(m),
	         m->instrument == OTEL_COUNTER ? "_total" : "");
}

void naming_label_name(const char *key, char out[NAMING_NAME_BYTES])
{
	write_underscored(out, NAMING_NAME_BYTES, key);
}

const struct otel_metric *naming_otel_of(enum field f, double *ret_factor)
{
	assert(f >= 0 && f < FIELD__COUNT);
	*ret_factor = rows[f].factor_otel;
	return rows[f].otel.name ? &rows[f].otel : NULL;
}

struct naming_family naming_family_of(enum naming n, enum field f, char name[NAMING_NAME_BYTES])
{
	const struct family *fam = family_of(f);
	const struct row *row = &rows[f];
	struct naming_family out = {.name = fam->name, .factor = 1, .type = fam->type};
	if (n == NAMING_OTEL && row->otel.name) {
		naming_prometheus_name(&row->otel, name);
		out.name = name;
		out.factor = row->factor_otel;
		out.type = row->otel.instrument == OTEL_COUNTER ? METRIC_COUNTER : METRIC_GAUGE;
		out.otel = &row->otel;
	} else if (n != NAMING_LEGACY && row->name_4_9) {
		out.name = row->name_4_9;
		out.factor = row->factor_4_9;
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
		if (rows[f].name_4_9 && strcmp(rows[f].name_4_9, name) == 0) {
			*ret_factor = rows[f].factor_4_9;
			return f;
		}
	return FIELD__COUNT;
}
