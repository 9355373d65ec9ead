// SPDX-License-Identifier: Apache-2.0
#include "exporter/families.h"

#include <assert.h>
#include <string.h>

#include "base/num.h"

// Ids, types and units: DCGM's dcgm_fields.h and dcgm-exporter's default-counters.csv (4.5 - 4.8 names).
static const struct family families[] = {
        [FIELD_SM_CLOCK] = {"DCGM_FI_DEV_SM_CLOCK", 100, METRIC_GAUGE, FIELD_INT, "MHz", "SM clock (MHz)."},
        [FIELD_MEM_CLOCK] = {"DCGM_FI_DEV_MEM_CLOCK", 101, METRIC_GAUGE, FIELD_INT, "MHz", "Memory clock (MHz)."},
        [FIELD_MEMORY_TEMP] = {"DCGM_FI_DEV_MEMORY_TEMP", 140, METRIC_GAUGE, FIELD_INT, "C",
                               "Temperature of the device memory (C)."},
        [FIELD_GPU_TEMP] = {"DCGM_FI_DEV_GPU_TEMP", 150, METRIC_GAUGE, FIELD_INT, "C", "Temperature of the GPU (C)."},
        [FIELD_POWER_USAGE] = {"DCGM_FI_DEV_POWER_USAGE", 155, METRIC_GAUGE, FIELD_DOUBLE, "W", "Power draw (W)."},
        [FIELD_TOTAL_ENERGY] = {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 156, METRIC_COUNTER, FIELD_INT, "mJ",
                                "Energy used since the driver was loaded (mJ)."},
        [FIELD_POWER_LIMIT] = {"DCGM_FI_DEV_POWER_MGMT_LIMIT", 160, METRIC_GAUGE, FIELD_DOUBLE, "W",
                               "Power limit in force (W)."},
        [FIELD_PCIE_REPLAY] = {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 202, METRIC_COUNTER, FIELD_INT, "retries",
                               "PCIe packets sent again."},
        [FIELD_GPU_UTIL] = {"DCGM_FI_DEV_GPU_UTIL", 203, METRIC_GAUGE, FIELD_INT, "%",
                            "Share of time with a kernel on the GPU (%)."},
        [FIELD_MEM_COPY_UTIL] = {"DCGM_FI_DEV_MEM_COPY_UTIL", 204, METRIC_GAUGE, FIELD_INT, "%",
                                 "Share of time the device memory was read or written (%)."},
        [FIELD_ENC_UTIL] = {"DCGM_FI_DEV_ENC_UTIL", 206, METRIC_GAUGE, FIELD_INT, "%", "Use of the video encoder (%)."},
        [FIELD_DEC_UTIL] = {"DCGM_FI_DEV_DEC_UTIL", 207, METRIC_GAUGE, FIELD_INT, "%", "Use of the video decoder (%)."},
        [FIELD_CLOCKS_EVENT_REASONS] = {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 112, METRIC_GAUGE, FIELD_INT, "bit mask",
                                        "Why the clocks are held down (bit mask)."},
        [FIELD_XID_ERRORS] = {"DCGM_FI_DEV_XID_ERRORS", 230, METRIC_GAUGE, FIELD_INT, "code",
                              "Code of the last XID error, 0 if none was seen."},
        [FIELD_FB_TOTAL] = {"DCGM_FI_DEV_FB_TOTAL", 250, METRIC_GAUGE, FIELD_INT, "MiB", "Device memory (MiB)."},
        [FIELD_FB_FREE] = {"DCGM_FI_DEV_FB_FREE", 251, METRIC_GAUGE, FIELD_INT, "MiB", "Device memory free (MiB)."},
        [FIELD_FB_USED] = {"DCGM_FI_DEV_FB_USED", 252, METRIC_GAUGE, FIELD_INT, "MiB", "Device memory used (MiB)."},
        [FIELD_FB_RESERVED] = {"DCGM_FI_DEV_FB_RESERVED", 253, METRIC_GAUGE, FIELD_INT, "MiB",
                               "Device memory kept by the driver (MiB)."},
        [FIELD_ECC_SBE_VOL] = {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 310, METRIC_COUNTER, FIELD_INT, "errors",
                               "Corrected memory errors since the last reset."},
        [FIELD_ECC_DBE_VOL] = {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 311, METRIC_COUNTER, FIELD_INT, "errors",
                               "Uncorrectable memory errors since the last reset."},
        [FIELD_ECC_SBE_AGG] = {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 312, METRIC_COUNTER, FIELD_INT, "errors",
                               "Corrected memory errors in the GPU's life."},
        [FIELD_ECC_DBE_AGG] = {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", 313, METRIC_COUNTER, FIELD_INT, "errors",
                               "Uncorrectable memory errors in the GPU's life."},
        [FIELD_GR_ENGINE_ACTIVE] = {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1001, METRIC_GAUGE, FIELD_DOUBLE, "0-1",
                                    "Share of time the graphics or compute engine was active (0-1)."},
        [FIELD_SM_ACTIVE] = {"DCGM_FI_PROF_SM_ACTIVE", 1002, METRIC_GAUGE, FIELD_DOUBLE, "0-1",
                             "Share of time an SM held a warp, mean over the SMs (0-1)."},
        [FIELD_SM_OCCUPANCY] = {"DCGM_FI_PROF_SM_OCCUPANCY", 1003, METRIC_GAUGE, FIELD_DOUBLE, "0-1",
                                "Resident warps by possible warps (0-1)."},
        [FIELD_PIPE_TENSOR_ACTIVE] = {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1004, METRIC_GAUGE, FIELD_DOUBLE, "0-1",
                                      "Share of cycles the tensor pipe was active (0-1)."},
        [FIELD_DRAM_ACTIVE] = {"DCGM_FI_PROF_DRAM_ACTIVE", 1005, METRIC_GAUGE, FIELD_DOUBLE, "0-1",
                               "Share of cycles the device memory interface was active (0-1)."},
        [FIELD_PCIE_TX_BYTES] = {"DCGM_FI_PROF_PCIE_TX_BYTES", 1009, METRIC_GAUGE, FIELD_INT, "B/s",
                                 "PCIe bytes a second from GPU to host."},
        [FIELD_PCIE_RX_BYTES] = {"DCGM_FI_PROF_PCIE_RX_BYTES", 1010, METRIC_GAUGE, FIELD_INT, "B/s",
                                 "PCIe bytes a second from host to GPU."},
};
_Static_assert(sizeof families / sizeof families[0] == FIELD__COUNT, "one row per field");

const struct family *family_of(enum field f)
{
	assert(f >= 0 && f < FIELD__COUNT);
	return &families[f];
}

enum field family_find(const char *name)
{
	for (int f = 0; f < FIELD__COUNT; f++)
		if (strcmp(families[f].name, name) == 0)
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
