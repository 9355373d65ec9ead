// SPDX-License-Identifier: Apache-2.0
// The other names of the metrics of a GPU: those of dcgm-exporter 4.9 (base/gpu_families.h), under which the exporter
// serves them as well, and those of other exporters. `gpuscale check` mentions them for a query.
#ifndef GPUSCALE_BASE_DCGM_NAMES_H
#define GPUSCALE_BASE_DCGM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

// clang-format off
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

// Returns the family that 4.9 renames and whose legacy name, or, if `is_new`, whose name in 4.9 is name[0..len); NULL
// when there is none.
const struct dcgm_name *dcgm_name_find(const char *name, size_t len, bool is_new);
// Returns the i-th family that 4.9 renames; NULL behind the last one.
const struct dcgm_name *dcgm_name_at(size_t i);

#endif
