// SPDX-License-Identifier: Apache-2.0
#include "policies/lint/lint_names.h"

#include <string.h>

#include "base/dcgm_names.h"
#include "base/num.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

// Names of dcgm-exporter up to 4.8; base/dcgm_names.h has those of 4.9. test_lint compares it with the exporter's own
// table. Violations, ECC, energy and link errors only grow; NVLINK_BANDWIDTH_TOTAL is typed a counter and is a rate all
// the same.
static const struct {
	const char *name;
	enum lint_kind kind;
} table[] = {
        {"DCGM_FI_DEV_SM_CLOCK", LINT_GAUGE},
        {"DCGM_FI_DEV_MEM_CLOCK", LINT_GAUGE},
        {"DCGM_FI_DEV_VIDEO_CLOCK", LINT_GAUGE},
        {"DCGM_FI_DEV_MAX_SM_CLOCK", LINT_GAUGE},
        {"DCGM_FI_DEV_MAX_MEM_CLOCK", LINT_GAUGE},
        {"DCGM_FI_DEV_MEMORY_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_GPU_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_SLOWDOWN_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_SHUTDOWN_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_POWER_USAGE", LINT_WATTS},
        {"DCGM_FI_DEV_POWER_USAGE_INSTANT", LINT_WATTS},
        {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", LINT_COUNTER},
        {"DCGM_FI_DEV_POWER_MGMT_LIMIT", LINT_WATTS},
        {"DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", LINT_WATTS},
        {"DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", LINT_WATTS},
        {"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", LINT_WATTS},
        {"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", LINT_WATTS},
        {"DCGM_FI_DEV_PSTATE", LINT_GAUGE},
        {"DCGM_FI_DEV_FAN_SPEED", LINT_PERCENT},
        {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", LINT_COUNTER},
        {"DCGM_FI_DEV_PCIE_MAX_LINK_GEN", LINT_GAUGE},
        {"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", LINT_GAUGE},
        {"DCGM_FI_DEV_PCIE_LINK_GEN", LINT_GAUGE},
        {"DCGM_FI_DEV_PCIE_LINK_WIDTH", LINT_GAUGE},
        {"DCGM_FI_DEV_GPU_UTIL", LINT_PERCENT},
        {"DCGM_FI_DEV_MEM_COPY_UTIL", LINT_PERCENT},
        {"DCGM_FI_DEV_ENC_UTIL", LINT_PERCENT},
        {"DCGM_FI_DEV_DEC_UTIL", LINT_PERCENT},
        {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", LINT_GAUGE},
        {"DCGM_FI_DEV_XID_ERRORS", LINT_CODE},
        {"DCGM_FI_DEV_POWER_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_THERMAL_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_SYNC_BOOST_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_LOW_UTIL_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_RELIABILITY_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_FB_TOTAL", LINT_GAUGE},
        {"DCGM_FI_DEV_FB_FREE", LINT_GAUGE},
        {"DCGM_FI_DEV_FB_USED", LINT_GAUGE},
        {"DCGM_FI_DEV_FB_RESERVED", LINT_GAUGE},
        {"DCGM_FI_DEV_FB_USED_PERCENT", LINT_RATIO},
        {"DCGM_FI_DEV_BAR1_TOTAL", LINT_GAUGE},
        {"DCGM_FI_DEV_BAR1_USED", LINT_GAUGE},
        {"DCGM_FI_DEV_BAR1_FREE", LINT_GAUGE},
        {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_RETIRED_SBE", LINT_COUNTER},
        {"DCGM_FI_DEV_RETIRED_DBE", LINT_COUNTER},
        {"DCGM_FI_DEV_RETIRED_PENDING", LINT_COUNTER},
        {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", LINT_COUNTER},
        {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", LINT_COUNTER},
        {"DCGM_FI_DEV_ROW_REMAP_FAILURE", LINT_GAUGE},
        {"DCGM_FI_DEV_ROW_REMAP_PENDING", LINT_GAUGE},
        {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", LINT_RATE},
        {"DCGM_FI_DEV_VGPU_LICENSE_STATUS", LINT_GAUGE},
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_SM_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_SM_OCCUPANCY", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_DRAM_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PCIE_TX_BYTES", LINT_RATE},
        {"DCGM_FI_PROF_PCIE_RX_BYTES", LINT_RATE},
        {"DCGM_FI_PROF_NVLINK_TX_BYTES", LINT_RATE},
        {"DCGM_FI_PROF_NVLINK_RX_BYTES", LINT_RATE},
        {"DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_INT_ACTIVE", LINT_RATIO},
        // Fields of DCGM that dcgm-exporter serves when its counters file names them.
        {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", LINT_GAUGE},
        {"DCGM_FI_DEV_GPU_MAX_OP_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_MEM_MAX_OP_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_PCIE_TX_THROUGHPUT", LINT_RATE},
        {"DCGM_FI_DEV_PCIE_RX_THROUGHPUT", LINT_RATE},
        {"DCGM_FI_DRIVER_VERSION", LINT_GAUGE},
        {"DCGM_FI_SYSTEM_DRIVER_VERSION", LINT_GAUGE},
        {"DCGM_FI_PROCESS_NAME", LINT_GAUGE},
        {"DCGM_FI_NVML_VERSION", LINT_GAUGE},
        {"DCGM_FI_CUDA_DRIVER_VERSION", LINT_GAUGE},
        {"DCGM_FI_DEV_NAME", LINT_GAUGE},
        {"DCGM_FI_DEV_SERIAL", LINT_GAUGE},
        {"DCGM_FI_DEV_BRAND", LINT_GAUGE},
        {"DCGM_FI_DEV_COUNT", LINT_GAUGE},
        {"DCGM_FI_DEV_VBIOS_VERSION", LINT_GAUGE},
        {"DCGM_FI_DEV_OEM_INFOROM_VER", LINT_GAUGE},
        {"DCGM_FI_DEV_ECC_INFOROM_VER", LINT_GAUGE},
        {"DCGM_FI_DEV_POWER_INFOROM_VER", LINT_GAUGE},
        {"DCGM_FI_DEV_INFOROM_IMAGE_VER", LINT_GAUGE},
        {"DCGM_FI_DEV_COMPUTE_MODE", LINT_GAUGE},
        {"DCGM_FI_DEV_PERSISTENCE_MODE", LINT_GAUGE},
        {"DCGM_FI_DEV_MIG_MODE", LINT_GAUGE},
        {"DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", LINT_RATE},
};

// Fields with a lane or link number at their end: NVLINK_BANDWIDTH_L0, PROF_NVLINK_L3_TX_BYTES, ...
static bool is_numbered(const char *name)
{
	return strncmp(name, "DCGM_FI_DEV_NVLINK_", 19) == 0 || strncmp(name, "DCGM_FI_PROF_NVLINK_L", 21) == 0 ||
	       strncmp(name, "DCGM_FI_DEV_ECC_", 16) == 0 || strncmp(name, "DCGM_FI_PROF_C2C_", 17) == 0;
}

// Names that are often written but never existed, and the name that is meant.
static const struct {
	const char *wrong, *right;
} often_wrong[] = {
        {"DCGM_FI_DEV_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_TX_BYTES"},
        {"DCGM_FI_DEV_PCIE_RX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES"},
        {"DCGM_FI_DEV_SM_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE"},
        {"DCGM_FI_DEV_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"},
        {"DCGM_FI_DEV_GPU_UTILIZATION", "DCGM_FI_DEV_GPU_UTIL"},
        {"DCGM_FI_DEV_MEMORY_USED", "DCGM_FI_DEV_FB_USED"},
        {"DCGM_FI_DEV_MEM_USED", "DCGM_FI_DEV_FB_USED"},
        {"DCGM_FI_DEV_TEMPERATURE", "DCGM_FI_DEV_GPU_TEMP"},
        {"DCGM_FI_DEV_POWER", "DCGM_FI_DEV_POWER_USAGE"},
};

static enum lint_kind kind_of(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(table); i++)
		if (strcmp(table[i].name, name) == 0)
			return table[i].kind;
	return LINT_KIND__COUNT;
}

enum lint_kind lint_name_kind(const char *name)
{
	enum lint_kind kind = kind_of(name);
	const struct dcgm_name *renamed = dcgm_name_find(name, strlen(name), true);
	if (kind == LINT_KIND__COUNT && renamed) {
		kind = kind_of(renamed->legacy);
		if (kind == LINT_PERCENT && renamed->factor < 1)
			kind = LINT_RATIO;
	}
	return kind;
}

bool lint_name_is_unknown(const char *name, const char **ret_meant)
{
	if (strncmp(name, "DCGM_FI_", 8) != 0 || lint_name_kind(name) != LINT_KIND__COUNT || is_numbered(name))
		return false;
	*ret_meant = NULL;
	for (size_t i = 0; i < COUNT_OF(often_wrong); i++)
		if (strcmp(often_wrong[i].wrong, name) == 0)
			*ret_meant = often_wrong[i].right;
	const char *names[COUNT_OF(table)];
	for (size_t i = 0; i < COUNT_OF(table); i++)
		names[i] = table[i].name;
	if (!*ret_meant)
		*ret_meant = num_closest_name(name, names, COUNT_OF(table));
	return true;
}
