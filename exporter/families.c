// SPDX-License-Identifier: Apache-2.0
#include "exporter/families.h"

#include <assert.h>
#include <string.h>

#include "base/num.h"

#define GAUGE   METRIC_GAUGE
#define COUNTER METRIC_COUNTER
#define INT     FIELD_INT
#define DOUBLE  FIELD_DOUBLE
// Ids, types and units: DCGM's dcgm_fields.h and dcgm-exporter's default-counters.csv (4.5 - 4.8 names).
static const struct family families[] = {
        [FIELD_SM_CLOCK] = {"DCGM_FI_DEV_SM_CLOCK", 100, GAUGE, INT, "MHz", "SM clock (MHz).", .window = "sm_clock"},
        [FIELD_MEM_CLOCK] = {"DCGM_FI_DEV_MEM_CLOCK", 101, GAUGE, INT, "MHz", "Memory clock (MHz)."},
        [FIELD_VIDEO_CLOCK] = {"DCGM_FI_DEV_VIDEO_CLOCK", 102, GAUGE, INT, "MHz",
                               "Video encoder and decoder clock (MHz)."},
        [FIELD_MAX_SM_CLOCK] = {"DCGM_FI_DEV_MAX_SM_CLOCK", 113, GAUGE, INT, "MHz", "Highest SM clock (MHz)."},
        [FIELD_MAX_MEM_CLOCK] = {"DCGM_FI_DEV_MAX_MEM_CLOCK", 114, GAUGE, INT, "MHz", "Highest memory clock (MHz)."},
        [FIELD_MEMORY_TEMP] = {"DCGM_FI_DEV_MEMORY_TEMP", 140, GAUGE, INT, "C", "Temperature of the device memory (C).",
                               .window = "memory_temp"},
        [FIELD_GPU_TEMP] = {"DCGM_FI_DEV_GPU_TEMP", 150, GAUGE, INT, "C", "Temperature of the GPU (C).",
                            .window = "gpu_temp"},
        [FIELD_SLOWDOWN_TEMP] = {"DCGM_FI_DEV_SLOWDOWN_TEMP", 158, GAUGE, INT, "C",
                                 "Temperature at which the clocks are lowered (C)."},
        [FIELD_SHUTDOWN_TEMP] = {"DCGM_FI_DEV_SHUTDOWN_TEMP", 159, GAUGE, INT, "C",
                                 "Temperature at which the GPU shuts down (C)."},
        [FIELD_POWER_USAGE] = {"DCGM_FI_DEV_POWER_USAGE", 155, GAUGE, DOUBLE, "W", "Power draw (W).",
                               .window = "power_usage"},
        [FIELD_POWER_USAGE_INSTANT] = {"DCGM_FI_DEV_POWER_USAGE_INSTANT", 157, GAUGE, DOUBLE, "W",
                                       "Power draw at this moment (W)."},
        [FIELD_TOTAL_ENERGY] = {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 156, COUNTER, INT, "mJ",
                                "Energy used since the driver was loaded (mJ).", .accumulates = true},
        [FIELD_POWER_LIMIT] = {"DCGM_FI_DEV_POWER_MGMT_LIMIT", 160, GAUGE, DOUBLE, "W", "Power limit as set (W)."},
        [FIELD_POWER_LIMIT_MIN] = {"DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", 161, GAUGE, DOUBLE, "W",
                                   "Lowest power limit that can be set (W)."},
        [FIELD_POWER_LIMIT_MAX] = {"DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", 162, GAUGE, DOUBLE, "W",
                                   "Highest power limit that can be set (W)."},
        [FIELD_POWER_LIMIT_DEFAULT] = {"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", 163, GAUGE, DOUBLE, "W",
                                       "Power limit when none is set (W)."},
        [FIELD_ENFORCED_POWER_LIMIT] = {"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 164, GAUGE, DOUBLE, "W",
                                        "Power limit in force, the lowest of all limiters (W)."},
        [FIELD_PSTATE] = {"DCGM_FI_DEV_PSTATE", 190, GAUGE, INT, "0-15", "Performance state, 0 is the fastest."},
        [FIELD_FAN_SPEED] = {"DCGM_FI_DEV_FAN_SPEED", 191, GAUGE, INT, "%", "Fan speed asked for (%)."},
        [FIELD_PCIE_REPLAY] = {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 202, COUNTER, INT, "retries",
                               "PCIe packets sent again.", .accumulates = true},
        [FIELD_PCIE_MAX_LINK_GEN] = {"DCGM_FI_DEV_PCIE_MAX_LINK_GEN", 235, GAUGE, INT, "generation",
                                     "Highest PCIe generation of the link."},
        [FIELD_PCIE_MAX_LINK_WIDTH] = {"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", 236, GAUGE, INT, "lanes",
                                       "Widest PCIe link."},
        [FIELD_PCIE_LINK_GEN] = {"DCGM_FI_DEV_PCIE_LINK_GEN", 237, GAUGE, INT, "generation",
                                 "PCIe generation of the link now."},
        [FIELD_PCIE_LINK_WIDTH] = {"DCGM_FI_DEV_PCIE_LINK_WIDTH", 238, GAUGE, INT, "lanes", "PCIe lanes in use."},
        [FIELD_GPU_UTIL] = {"DCGM_FI_DEV_GPU_UTIL", 203, GAUGE, INT, "%", "Share of time with a kernel on the GPU (%).",
                            .window = "gpu_util"},
        [FIELD_MEM_COPY_UTIL] = {"DCGM_FI_DEV_MEM_COPY_UTIL", 204, GAUGE, INT, "%",
                                 "Share of time the device memory was read or written (%).", .window = "mem_copy_util"},
        [FIELD_ENC_UTIL] = {"DCGM_FI_DEV_ENC_UTIL", 206, GAUGE, INT, "%", "Use of the video encoder (%)."},
        [FIELD_DEC_UTIL] = {"DCGM_FI_DEV_DEC_UTIL", 207, GAUGE, INT, "%", "Use of the video decoder (%)."},
        [FIELD_CLOCKS_EVENT_REASONS] = {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 112, GAUGE, INT, "bit mask",
                                        "Why the clocks are held down (bit mask)."},
        [FIELD_XID_ERRORS] = {"DCGM_FI_DEV_XID_ERRORS", 230, GAUGE, INT, "code",
                              "Code of the last XID error, 0 if none was seen."},
        [FIELD_POWER_VIOLATION] = {"DCGM_FI_DEV_POWER_VIOLATION", 240, COUNTER, INT, "ns",
                                   "Time the clocks were held down by the power limit (ns).", .accumulates = true},
        [FIELD_THERMAL_VIOLATION] = {"DCGM_FI_DEV_THERMAL_VIOLATION", 241, COUNTER, INT, "ns",
                                     "Time the clocks were held down by the temperature (ns).", .accumulates = true},
        [FIELD_SYNC_BOOST_VIOLATION] = {"DCGM_FI_DEV_SYNC_BOOST_VIOLATION", 242, COUNTER, INT, "ns",
                                        "Time the clocks were held down by sync boost (ns).", .accumulates = true},
        [FIELD_BOARD_LIMIT_VIOLATION] = {"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", 243, COUNTER, INT, "ns",
                                         "Time the clocks were held down by a limit of the board (ns).",
                                         .accumulates = true},
        [FIELD_LOW_UTIL_VIOLATION] = {"DCGM_FI_DEV_LOW_UTIL_VIOLATION", 244, COUNTER, INT, "ns",
                                      "Time the clocks were held down for lack of work (ns).", .accumulates = true},
        [FIELD_RELIABILITY_VIOLATION] = {"DCGM_FI_DEV_RELIABILITY_VIOLATION", 245, COUNTER, INT, "ns",
                                         "Time the clocks were held down for reliability (ns).", .accumulates = true},
        [FIELD_APP_CLOCKS_VIOLATION] = {"DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION", 246, COUNTER, INT, "ns",
                                        "Time below the application clocks (ns).", .accumulates = true},
        [FIELD_BASE_CLOCKS_VIOLATION] = {"DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION", 247, COUNTER, INT, "ns",
                                         "Time below the base clocks (ns).", .accumulates = true},
        [FIELD_FB_TOTAL] = {"DCGM_FI_DEV_FB_TOTAL", 250, GAUGE, INT, "MiB", "Device memory (MiB)."},
        [FIELD_FB_FREE] = {"DCGM_FI_DEV_FB_FREE", 251, GAUGE, INT, "MiB", "Device memory free (MiB)."},
        [FIELD_FB_USED] = {"DCGM_FI_DEV_FB_USED", 252, GAUGE, INT, "MiB", "Device memory used (MiB).",
                           .window = "fb_used"},
        [FIELD_FB_RESERVED] = {"DCGM_FI_DEV_FB_RESERVED", 253, GAUGE, INT, "MiB",
                               "Device memory kept by the driver (MiB)."},
        [FIELD_FB_USED_PERCENT] = {"DCGM_FI_DEV_FB_USED_PERCENT", 254, GAUGE, DOUBLE, "0-1",
                                   "Device memory used by what can be used (0-1)."},
        [FIELD_BAR1_TOTAL] = {"DCGM_FI_DEV_BAR1_TOTAL", 90, GAUGE, INT, "MiB", "BAR1 memory (MiB)."},
        [FIELD_BAR1_USED] = {"DCGM_FI_DEV_BAR1_USED", 92, GAUGE, INT, "MiB", "BAR1 memory used (MiB)."},
        [FIELD_BAR1_FREE] = {"DCGM_FI_DEV_BAR1_FREE", 93, GAUGE, INT, "MiB", "BAR1 memory free (MiB)."},
        [FIELD_ECC_SBE_VOL] = {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 310, COUNTER, INT, "errors",
                               "Corrected memory errors since the last reset."},
        [FIELD_ECC_DBE_VOL] = {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 311, COUNTER, INT, "errors",
                               "Uncorrectable memory errors since the last reset."},
        [FIELD_ECC_SBE_AGG] = {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 312, COUNTER, INT, "errors",
                               "Corrected memory errors in the GPU's life."},
        [FIELD_ECC_DBE_AGG] = {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", 313, COUNTER, INT, "errors",
                               "Uncorrectable memory errors in the GPU's life."},
        [FIELD_RETIRED_SBE] = {"DCGM_FI_DEV_RETIRED_SBE", 390, COUNTER, INT, "pages",
                               "Pages retired for corrected errors."},
        [FIELD_RETIRED_DBE] = {"DCGM_FI_DEV_RETIRED_DBE", 391, COUNTER, INT, "pages",
                               "Pages retired for uncorrectable errors."},
        [FIELD_RETIRED_PENDING] = {"DCGM_FI_DEV_RETIRED_PENDING", 392, COUNTER, INT, "pages",
                                   "Pages that the next reset retires."},
        [FIELD_UNCORRECTABLE_REMAPPED_ROWS] = {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 393, COUNTER, INT, "rows",
                                               "Memory rows remapped for uncorrectable errors."},
        [FIELD_CORRECTABLE_REMAPPED_ROWS] = {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 394, COUNTER, INT, "rows",
                                             "Memory rows remapped for corrected errors."},
        [FIELD_ROW_REMAP_FAILURE] = {"DCGM_FI_DEV_ROW_REMAP_FAILURE", 395, GAUGE, INT, "0/1",
                                     "1 if a row could not be remapped."},
        [FIELD_ROW_REMAP_PENDING] = {"DCGM_FI_DEV_ROW_REMAP_PENDING", 396, GAUGE, INT, "0/1",
                                     "1 if a row waits for the next reset to be remapped."},
        [FIELD_NVLINK_CRC_FLIT_ERRORS] = {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 409, COUNTER, INT, "errors",
                                          "NVLink flow-control CRC errors, all links.", .accumulates = true},
        [FIELD_NVLINK_CRC_DATA_ERRORS] = {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 419, COUNTER, INT, "errors",
                                          "NVLink data CRC errors, all links.", .accumulates = true},
        [FIELD_NVLINK_REPLAY_ERRORS] = {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 429, COUNTER, INT, "errors",
                                        "NVLink replays, all links.", .accumulates = true},
        [FIELD_NVLINK_RECOVERY_ERRORS] = {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 439, COUNTER, INT, "errors",
                                          "NVLink recoveries, all links.", .accumulates = true},
        [FIELD_NVLINK_BANDWIDTH_TOTAL] =
                {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 449, COUNTER, INT, "1000 KiB/s",
                 "NVLink data rate both ways, all links (1000 KiB/s; a rate, as DCGM has it)."},
        [FIELD_VGPU_LICENSE_STATUS] = {"DCGM_FI_DEV_VGPU_LICENSE_STATUS", 526, GAUGE, INT, "0/1",
                                       "1 if the virtual GPU has a licence."},
        [FIELD_GR_ENGINE_ACTIVE] = {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1001, GAUGE, DOUBLE, "0-1",
                                    "Share of time the graphics or compute engine was active (0-1).",
                                    .window = "gr_engine_active"},
        [FIELD_SM_ACTIVE] = {"DCGM_FI_PROF_SM_ACTIVE", 1002, GAUGE, DOUBLE, "0-1",
                             "Share of time an SM held a warp, mean over the SMs (0-1).", .window = "sm_active"},
        [FIELD_SM_OCCUPANCY] = {"DCGM_FI_PROF_SM_OCCUPANCY", 1003, GAUGE, DOUBLE, "0-1",
                                "Resident warps by possible warps (0-1).", .window = "sm_occupancy"},
        [FIELD_PIPE_TENSOR_ACTIVE] = {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1004, GAUGE, DOUBLE, "0-1",
                                      "Share of cycles the tensor pipe was active (0-1).",
                                      .window = "pipe_tensor_active"},
        [FIELD_DRAM_ACTIVE] = {"DCGM_FI_PROF_DRAM_ACTIVE", 1005, GAUGE, DOUBLE, "0-1",
                               "Share of cycles the device memory interface was active (0-1).",
                               .window = "dram_active"},
        [FIELD_PIPE_FP64_ACTIVE] = {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", 1006, GAUGE, DOUBLE, "0-1",
                                    "Share of cycles the FP64 pipe was active (0-1)."},
        [FIELD_PIPE_FP32_ACTIVE] = {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", 1007, GAUGE, DOUBLE, "0-1",
                                    "Share of cycles the FP32 pipe was active (0-1)."},
        [FIELD_PIPE_FP16_ACTIVE] = {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", 1008, GAUGE, DOUBLE, "0-1",
                                    "Share of cycles the FP16 pipe was active (0-1)."},
        [FIELD_PCIE_TX_BYTES] = {"DCGM_FI_PROF_PCIE_TX_BYTES", 1009, GAUGE, INT, "B/s",
                                 "PCIe bytes a second from GPU to host.", .window = "pcie_tx_bytes"},
        [FIELD_PCIE_RX_BYTES] = {"DCGM_FI_PROF_PCIE_RX_BYTES", 1010, GAUGE, INT, "B/s",
                                 "PCIe bytes a second from host to GPU.", .window = "pcie_rx_bytes"},
        [FIELD_NVLINK_TX_BYTES] = {"DCGM_FI_PROF_NVLINK_TX_BYTES", 1011, GAUGE, INT, "B/s",
                                   "NVLink bytes a second sent, all links.", .window = "nvlink_tx_bytes"},
        [FIELD_NVLINK_RX_BYTES] = {"DCGM_FI_PROF_NVLINK_RX_BYTES", 1012, GAUGE, INT, "B/s",
                                   "NVLink bytes a second received, all links.", .window = "nvlink_rx_bytes"},
        [FIELD_PIPE_TENSOR_IMMA_ACTIVE] = {"DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", 1013, GAUGE, DOUBLE, "0-1",
                                           "Share of cycles the tensor pipe did integer work (0-1)."},
        [FIELD_PIPE_TENSOR_HMMA_ACTIVE] = {"DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", 1014, GAUGE, DOUBLE, "0-1",
                                           "Share of cycles the tensor pipe did FP16 work (0-1)."},
        [FIELD_PIPE_TENSOR_DFMA_ACTIVE] = {"DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", 1015, GAUGE, DOUBLE, "0-1",
                                           "Share of cycles the tensor pipe did FP64 work (0-1)."},
        [FIELD_PIPE_INT_ACTIVE] = {"DCGM_FI_PROF_PIPE_INT_ACTIVE", 1016, GAUGE, DOUBLE, "0-1",
                                   "Share of cycles the integer pipe was active (0-1)."},
        [FIELD_RECOVERY_ACTION] = {"gpuscale_gpu_recovery_action", 0, GAUGE, INT, "action",
                                   "What the driver says is needed: 0 nothing, 1 reset, 2 reboot, 3 drain P2P, 4 drain "
                                   "and reset, 5 recover the IMEX domain."},
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
		double max;
	} ceilings[] = {{"C", 1000},  {"W", 1e6}, {"MHz", 1e6},   {"0-15", 15},
	                {"0-1", 1.1}, {"0/1", 1}, {"lanes", 256}, {"generation", 32}};
	double max = 9e18; // it must fit 64 bits
	if (f == FIELD_FAN_SPEED)
		max = 1000; // of what was asked for, which can be above 100 %
	else if (strcmp(families[f].unit, "%") == 0)
		max = 100;
	for (size_t i = 0; i < sizeof ceilings / sizeof ceilings[0]; i++)
		if (strcmp(families[f].unit, ceilings[i].unit) == 0)
			max = ceilings[i].max;
	return v >= 0 && v <= max; // false for NaN
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
