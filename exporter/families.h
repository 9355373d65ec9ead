// SPDX-License-Identifier: Apache-2.0
// The one table of what the exporter can say about a GPU: dcgm-exporter's legacy names, with their ids, types and
// units. Backends fill readings by enum field; the renderer, the mock script and the documentation follow this table.
#ifndef GPUSCALE_EXPORTER_FAMILIES_H
#define GPUSCALE_EXPORTER_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/exposition.h"

// In the order of the exposition.
enum field {
	FIELD_SM_CLOCK,
	FIELD_MEM_CLOCK,
	FIELD_VIDEO_CLOCK,
	FIELD_MAX_SM_CLOCK,
	FIELD_MAX_MEM_CLOCK,
	FIELD_MEMORY_TEMP,
	FIELD_GPU_TEMP,
	FIELD_SLOWDOWN_TEMP,
	FIELD_SHUTDOWN_TEMP,
	FIELD_POWER_USAGE,
	FIELD_POWER_USAGE_INSTANT,
	FIELD_TOTAL_ENERGY,
	FIELD_POWER_LIMIT,
	FIELD_POWER_LIMIT_MIN,
	FIELD_POWER_LIMIT_MAX,
	FIELD_POWER_LIMIT_DEFAULT,
	FIELD_ENFORCED_POWER_LIMIT,
	FIELD_PSTATE,
	FIELD_FAN_SPEED,
	FIELD_PCIE_REPLAY,
	FIELD_PCIE_MAX_LINK_GEN,
	FIELD_PCIE_MAX_LINK_WIDTH,
	FIELD_PCIE_LINK_GEN,
	FIELD_PCIE_LINK_WIDTH,
	FIELD_GPU_UTIL,
	FIELD_MEM_COPY_UTIL,
	FIELD_ENC_UTIL,
	FIELD_DEC_UTIL,
	FIELD_CLOCKS_EVENT_REASONS,
	FIELD_XID_ERRORS,
	FIELD_POWER_VIOLATION,
	FIELD_THERMAL_VIOLATION,
	FIELD_SYNC_BOOST_VIOLATION,
	FIELD_BOARD_LIMIT_VIOLATION,
	FIELD_LOW_UTIL_VIOLATION,
	FIELD_RELIABILITY_VIOLATION,
	FIELD_APP_CLOCKS_VIOLATION,
	FIELD_BASE_CLOCKS_VIOLATION,
	FIELD_FB_TOTAL,
	FIELD_FB_FREE,
	FIELD_FB_USED,
	FIELD_FB_RESERVED,
	FIELD_FB_USED_PERCENT,
	FIELD_BAR1_TOTAL,
	FIELD_BAR1_USED,
	FIELD_BAR1_FREE,
	FIELD_ECC_SBE_VOL,
	FIELD_ECC_DBE_VOL,
	FIELD_ECC_SBE_AGG,
	FIELD_ECC_DBE_AGG,
	FIELD_RETIRED_SBE,
	FIELD_RETIRED_DBE,
	FIELD_RETIRED_PENDING,
	FIELD_UNCORRECTABLE_REMAPPED_ROWS,
	FIELD_CORRECTABLE_REMAPPED_ROWS,
	FIELD_ROW_REMAP_FAILURE,
	FIELD_ROW_REMAP_PENDING,
	FIELD_NVLINK_CRC_FLIT_ERRORS,
	FIELD_NVLINK_CRC_DATA_ERRORS,
	FIELD_NVLINK_REPLAY_ERRORS,
	FIELD_NVLINK_RECOVERY_ERRORS,
	FIELD_NVLINK_BANDWIDTH_TOTAL,
	FIELD_VGPU_LICENSE_STATUS,
	FIELD_GR_ENGINE_ACTIVE,
	FIELD_SM_ACTIVE,
	FIELD_SM_OCCUPANCY,
	FIELD_PIPE_TENSOR_ACTIVE,
	FIELD_DRAM_ACTIVE,
	FIELD_PIPE_FP64_ACTIVE,
	FIELD_PIPE_FP32_ACTIVE,
	FIELD_PIPE_FP16_ACTIVE,
	FIELD_PCIE_TX_BYTES,
	FIELD_PCIE_RX_BYTES,
	FIELD_NVLINK_TX_BYTES,
	FIELD_NVLINK_RX_BYTES,
	FIELD_PIPE_TENSOR_IMMA_ACTIVE,
	FIELD_PIPE_TENSOR_HMMA_ACTIVE,
	FIELD_PIPE_TENSOR_DFMA_ACTIVE,
	FIELD_PIPE_INT_ACTIVE,
	FIELD_RECOVERY_ACTION,
	FIELD__COUNT
};

enum field_kind { FIELD_INT, FIELD_DOUBLE };

struct family {
	const char *name; // "DCGM_FI_DEV_GPU_UTIL"
	int dcgm_id;      // DCGM field id; 0: a family of our own
	enum metric_type type;
	enum field_kind kind; // how the value is written: %d or %f
	const char *unit;     // for people
	const char *help;
	// "gpu_util": minimum, maximum and mean over the window are kept, as gpuscale_gpu_gpu_util_window_*. NULL: not.
	const char *window;
	bool accumulates; // a counter that the driver starts over: the sampler carries it on (monotone.h)
};

// The row of `f`. Never NULL.
const struct family *family_of(enum field f);
// Whether a device can have this value: a finite number, not below 0, and by its unit not above 100 %, 15 performance
// states, a share of 1.1, a million watts .. What a driver or a file says beyond that is its way to say that there is
// no value (all bits set, 65535), and is left out.
bool family_is_plausible(enum field f, double v);
// The field called name, or FIELD__COUNT.
enum field family_find(const char *name);
// The field with this DCGM id, or FIELD__COUNT.
enum field family_find_id(int dcgm_id);
// The table's name nearest to a misspelt one, or NULL.
const char *family_closest_name(const char *name);

#endif
