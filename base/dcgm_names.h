// SPDX-License-Identifier: Apache-2.0
// The metrics that dcgm-exporter 4.9 renames: the exporter serves them under either name, and `gpuscale check` mentions
// the new name of a metric in a query.
#ifndef GPUSCALE_BASE_DCGM_NAMES_H
#define GPUSCALE_BASE_DCGM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

// The table: ROW(field of gpu_families.h without FIELD_, name up to dcgm-exporter 4.8, name in 4.9, factor of the
// value there). dcgm-exporter 4.9.0 renames the 23 of them that its default and profiling sets contain; the others have
// their new names in DCGM 4.7's dcgm_fields.h and in its table of deprecated names (1600 and above: fields in base
// units). The violation counters keep their names, which DCGM 4.7 still has. DCGM divides the NVLink throughput in
// KiB/s by 1000 under the old name, and multiplies it by 1024 under the new one.
// clang-format off
#define DCGM_MHZ  1e6
#define DCGM_MIB  1048576.0
#define DCGM_CENT 0.01
#define DCGM_NAMES_4_9(ROW) \
	ROW(SM_CLOCK,                    "DCGM_FI_DEV_SM_CLOCK",                          "DCGM_FI_DEV_SM_CLOCK_HERTZ",                     DCGM_MHZ) \
	ROW(MEM_CLOCK,                   "DCGM_FI_DEV_MEM_CLOCK",                         "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ",                 DCGM_MHZ) \
	ROW(VIDEO_CLOCK,                 "DCGM_FI_DEV_VIDEO_CLOCK",                       "DCGM_FI_DEV_VIDEO_CLOCK_HERTZ",                  DCGM_MHZ) \
	ROW(MAX_SM_CLOCK,                "DCGM_FI_DEV_MAX_SM_CLOCK",                      "DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ",                 DCGM_MHZ) \
	ROW(MAX_MEM_CLOCK,               "DCGM_FI_DEV_MAX_MEM_CLOCK",                     "DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ",             DCGM_MHZ) \
	ROW(MEMORY_TEMP,                 "DCGM_FI_DEV_MEMORY_TEMP",                       "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS",                1) \
	ROW(GPU_TEMP,                    "DCGM_FI_DEV_GPU_TEMP",                          "DCGM_FI_DEV_GPU_TEMP_CELSIUS",                   1) \
	ROW(SLOWDOWN_TEMP,               "DCGM_FI_DEV_SLOWDOWN_TEMP",                     "DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS",          1) \
	ROW(SHUTDOWN_TEMP,               "DCGM_FI_DEV_SHUTDOWN_TEMP",                     "DCGM_FI_DEV_GPU_TEMP_SHUTDOWN_CELSIUS",          1) \
	ROW(POWER_USAGE,                 "DCGM_FI_DEV_POWER_USAGE",                       "DCGM_FI_DEV_BOARD_POWER_WATTS",                  1) \
	ROW(POWER_USAGE_INSTANT,         "DCGM_FI_DEV_POWER_USAGE_INSTANT",               "DCGM_FI_DEV_BOARD_POWER_RAW_WATTS",              1) \
	ROW(TOTAL_ENERGY,                "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",          "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL",            1e-3) \
	ROW(POWER_LIMIT,                 "DCGM_FI_DEV_POWER_MGMT_LIMIT",                  "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS",  1) \
	ROW(POWER_LIMIT_MIN,             "DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN",              "DCGM_FI_DEV_BOARD_POWER_LIMIT_MIN_WATTS",        1) \
	ROW(POWER_LIMIT_MAX,             "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX",              "DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS",        1) \
	ROW(POWER_LIMIT_DEFAULT,         "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF",              "DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS",    1) \
	ROW(ENFORCED_POWER_LIMIT,        "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",              "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS",   1) \
	ROW(PSTATE,                      "DCGM_FI_DEV_PSTATE",                            "DCGM_FI_DEV_GPU_PSTATE",                         1) \
	ROW(FAN_SPEED,                   "DCGM_FI_DEV_FAN_SPEED",                         "DCGM_FI_DEV_FAN_SPEED_RATIO",                    DCGM_CENT) \
	ROW(PCIE_REPLAY,                 "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",               "DCGM_FI_DEV_PCIE_REPLAY_TOTAL",                  1) \
	ROW(GPU_UTIL,                    "DCGM_FI_DEV_GPU_UTIL",                          "DCGM_FI_DEV_GPU_UTIL_RATIO",                     DCGM_CENT) \
	ROW(MEM_COPY_UTIL,               "DCGM_FI_DEV_MEM_COPY_UTIL",                     "DCGM_FI_DEV_MEMORY_UTIL_RATIO",                  DCGM_CENT) \
	ROW(ENC_UTIL,                    "DCGM_FI_DEV_ENC_UTIL",                          "DCGM_FI_DEV_ENC_UTIL_RATIO",                     DCGM_CENT) \
	ROW(DEC_UTIL,                    "DCGM_FI_DEV_DEC_UTIL",                          "DCGM_FI_DEV_DEC_UTIL_RATIO",                     DCGM_CENT) \
	ROW(XID_ERRORS,                  "DCGM_FI_DEV_XID_ERRORS",                        "DCGM_FI_DEV_XID_ERROR",                          1) \
	ROW(FB_TOTAL,                    "DCGM_FI_DEV_FB_TOTAL",                          "DCGM_FI_DEV_FB_CAPACITY_BYTES",                  DCGM_MIB) \
	ROW(FB_FREE,                     "DCGM_FI_DEV_FB_FREE",                           "DCGM_FI_DEV_FB_FREE_BYTES",                      DCGM_MIB) \
	ROW(FB_USED,                     "DCGM_FI_DEV_FB_USED",                           "DCGM_FI_DEV_FB_USED_BYTES",                      DCGM_MIB) \
	ROW(FB_RESERVED,                 "DCGM_FI_DEV_FB_RESERVED",                       "DCGM_FI_DEV_FB_RESERVED_BYTES",                  DCGM_MIB) \
	ROW(FB_USED_PERCENT,             "DCGM_FI_DEV_FB_USED_PERCENT",                   "DCGM_FI_DEV_FB_USED_RATIO",                      1) \
	ROW(BAR1_TOTAL,                  "DCGM_FI_DEV_BAR1_TOTAL",                        "DCGM_FI_DEV_BAR1_CAPACITY_BYTES",                DCGM_MIB) \
	ROW(BAR1_USED,                   "DCGM_FI_DEV_BAR1_USED",                         "DCGM_FI_DEV_BAR1_USED_BYTES",                    DCGM_MIB) \
	ROW(BAR1_FREE,                   "DCGM_FI_DEV_BAR1_FREE",                         "DCGM_FI_DEV_BAR1_FREE_BYTES",                    DCGM_MIB) \
	ROW(RETIRED_SBE,                 "DCGM_FI_DEV_RETIRED_SBE",                       "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL",             1) \
	ROW(RETIRED_DBE,                 "DCGM_FI_DEV_RETIRED_DBE",                       "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL",             1) \
	ROW(RETIRED_PENDING,             "DCGM_FI_DEV_RETIRED_PENDING",                   "DCGM_FI_DEV_PAGE_RETIRED_PENDING",               1) \
	ROW(UNCORRECTABLE_REMAPPED_ROWS, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",       "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL",      1) \
	ROW(CORRECTABLE_REMAPPED_ROWS,   "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",         "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL",        1) \
	ROW(ROW_REMAP_FAILURE,           "DCGM_FI_DEV_ROW_REMAP_FAILURE",                 "DCGM_FI_DEV_ROW_REMAP_FAILED",                   1) \
	ROW(NVLINK_CRC_FLIT_ERRORS,      "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL",        1) \
	ROW(NVLINK_CRC_DATA_ERRORS,      "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL",        1) \
	ROW(NVLINK_REPLAY_ERRORS,        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",   "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL",          1) \
	ROW(NVLINK_RECOVERY_ERRORS,      "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL",        1) \
	ROW(NVLINK_BANDWIDTH_TOTAL,      "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",            "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", 1024000) \
	ROW(GR_ENGINE_ACTIVE,            "DCGM_FI_PROF_GR_ENGINE_ACTIVE",                 "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",              1) \
	ROW(SM_ACTIVE,                   "DCGM_FI_PROF_SM_ACTIVE",                        "DCGM_FI_PROF_SM_UTIL_RATIO",                     1) \
	ROW(SM_OCCUPANCY,                "DCGM_FI_PROF_SM_OCCUPANCY",                     "DCGM_FI_PROF_SM_OCCUPANCY_RATIO",                1) \
	ROW(PIPE_TENSOR_ACTIVE,          "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",               "DCGM_FI_PROF_TENSOR_UTIL_RATIO",                 1) \
	ROW(DRAM_ACTIVE,                 "DCGM_FI_PROF_DRAM_ACTIVE",                      "DCGM_FI_PROF_DRAM_UTIL_RATIO",                   1) \
	ROW(PIPE_FP64_ACTIVE,            "DCGM_FI_PROF_PIPE_FP64_ACTIVE",                 "DCGM_FI_PROF_FP64_UTIL_RATIO",                   1) \
	ROW(PIPE_FP32_ACTIVE,            "DCGM_FI_PROF_PIPE_FP32_ACTIVE",                 "DCGM_FI_PROF_FP32_UTIL_RATIO",                   1) \
	ROW(PIPE_FP16_ACTIVE,            "DCGM_FI_PROF_PIPE_FP16_ACTIVE",                 "DCGM_FI_PROF_FP16_UTIL_RATIO",                   1) \
	ROW(PIPE_TENSOR_IMMA_ACTIVE,     "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE",          "DCGM_FI_PROF_IMMA_UTIL_RATIO",                   1) \
	ROW(PIPE_TENSOR_HMMA_ACTIVE,     "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE",          "DCGM_FI_PROF_HMMA_UTIL_RATIO",                   1) \
	ROW(PIPE_TENSOR_DFMA_ACTIVE,     "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE",          "DCGM_FI_PROF_DFMA_UTIL_RATIO",                   1) \
	ROW(PIPE_INT_ACTIVE,             "DCGM_FI_PROF_PIPE_INT_ACTIVE",                  "DCGM_FI_PROF_INT_UTIL_RATIO",                    1)

// What other exporters of GPUs call these metrics: ROW(name, legacy name, how the value converts to that, whose). The rules
// record those of AMD and INTEL under the legacy names; `gpuscale check` names the equivalents of all. AMD's
// device-metrics-exporter: its docs/configuration/metricslist.md; amd_ is a usual prefix there. xpumanager 1.x:
// prometheus_exporter_types.py, whose ratios are from 0 to 1. SMI: nvidia_gpu_exporter, GPU: nvidia_gpu_prometheus_exporter.
#define GPU_NAMES(ROW) \
	ROW("gpu_gfx_activity",                    "DCGM_FI_DEV_GPU_UTIL",            "",            AMD) \
	ROW("gpu_umc_activity",                    "DCGM_FI_DEV_MEM_COPY_UTIL",       "",            AMD) \
	ROW("gpu_used_vram",                       "DCGM_FI_DEV_FB_USED",             "",            AMD) \
	ROW("gpu_free_vram",                       "DCGM_FI_DEV_FB_FREE",             "",            AMD) \
	ROW("gpu_total_vram",                      "DCGM_FI_DEV_FB_TOTAL",            "",            AMD) \
	ROW("gpu_package_power",                   "DCGM_FI_DEV_POWER_USAGE",         "",            AMD) \
	ROW("gpu_power_usage",                     "DCGM_FI_DEV_POWER_USAGE",         "",            AMD) \
	ROW("gpu_junction_temperature",            "DCGM_FI_DEV_GPU_TEMP",            "",            AMD) \
	ROW("gpu_memory_temperature",              "DCGM_FI_DEV_MEMORY_TEMP",         "",            AMD) \
	ROW("gpu_prof_sm_active",                  "DCGM_FI_PROF_SM_ACTIVE",          " / 100",      AMD) \
	ROW("gpu_prof_gui_util_percent",           "DCGM_FI_PROF_GR_ENGINE_ACTIVE",   " / 100",      AMD) \
	ROW("gpu_prof_occupancy_percent",          "DCGM_FI_PROF_SM_OCCUPANCY",       " / 100",      AMD) \
	ROW("gpu_prof_tensor_active_percent",      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", " / 100",      AMD) \
	ROW("gpu_ecc_uncorrect_total",             "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",   "",            AMD) \
	ROW("gpu_ecc_correct_total",               "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",   "",            AMD) \
	ROW("pcie_replay_count",                   "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "",            AMD) \
	ROW("xpum_engine_ratio",                   "DCGM_FI_DEV_GPU_UTIL",            " * 100",      INTEL) \
	ROW("xpum_memory_used_bytes",              "DCGM_FI_DEV_FB_USED",             " / 1048576",  INTEL) \
	ROW("xpum_power_watts",                    "DCGM_FI_DEV_POWER_USAGE",         "",            INTEL) \
	ROW("xpum_temperature_celsius",            "DCGM_FI_DEV_GPU_TEMP",            "",            INTEL) \
	ROW("xpum_energy_joules",                  "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", " * 1000", INTEL) \
	ROW("nvidia_smi_utilization_gpu_ratio",    "DCGM_FI_DEV_GPU_UTIL",            " * 100",      SMI) \
	ROW("nvidia_smi_utilization_memory_ratio", "DCGM_FI_DEV_MEM_COPY_UTIL",       " * 100",      SMI) \
	ROW("nvidia_smi_memory_used_bytes",        "DCGM_FI_DEV_FB_USED",             " / 1048576",  SMI) \
	ROW("nvidia_smi_memory_free_bytes",        "DCGM_FI_DEV_FB_FREE",             " / 1048576",  SMI) \
	ROW("nvidia_smi_memory_total_bytes",       "DCGM_FI_DEV_FB_TOTAL",            " / 1048576",  SMI) \
	ROW("nvidia_smi_power_draw_watts",         "DCGM_FI_DEV_POWER_USAGE",         "",            SMI) \
	ROW("nvidia_smi_temperature_gpu",          "DCGM_FI_DEV_GPU_TEMP",            "",            SMI) \
	ROW("nvidia_gpu_duty_cycle",               "DCGM_FI_DEV_GPU_UTIL",            "",            GPU) \
	ROW("nvidia_gpu_memory_used_bytes",        "DCGM_FI_DEV_FB_USED",             " / 1048576",  GPU) \
	ROW("nvidia_gpu_memory_total_bytes",       "DCGM_FI_DEV_FB_TOTAL",            " / 1048576",  GPU) \
	ROW("nvidia_gpu_power_usage_milliwatts",   "DCGM_FI_DEV_POWER_USAGE",         " / 1000",     GPU) \
	ROW("nvidia_gpu_temperature_celsius",      "DCGM_FI_DEV_GPU_TEMP",            "",            GPU)
// clang-format on

struct dcgm_name {
	const char *legacy, *name_4_9;
	double factor; // value under name_4_9 = factor * value under the legacy name
};

// Returns the row whose legacy name, or, if `is_new`, whose name in 4.9 is name[0..len); NULL when there is none.
const struct dcgm_name *dcgm_name_find(const char *name, size_t len, bool is_new);
// Returns row i of the table; NULL behind the last one.
const struct dcgm_name *dcgm_name_at(size_t i);

#endif
