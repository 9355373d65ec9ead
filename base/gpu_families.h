// SPDX-License-Identifier: Apache-2.0
// The metrics of a GPU, one row per family: the legacy names of dcgm-exporter, with their ids, types and units. The
// exporter serves them, and `gpuscale check` knows from them what a query may do with a metric.
#ifndef GPUSCALE_BASE_GPU_FAMILIES_H
#define GPUSCALE_BASE_GPU_FAMILIES_H

// The table, in the order of the exposition: field, name, DCGM field id (0: a family of gpuscale's), type, kind, what
// it applies to (enum family_scope of exporter/families.h), unit, name of its windows (NULL: none are kept), whether
// the counter accumulates, help text. struct family describes the columns. To add a metric, add a row here and let a
// backend fill the field. Ids, types and units: DCGM's dcgm_fields.h and dcgm-exporter's default-counters.csv (names
// of 4.5 to 4.8).
// clang-format off
#define FAMILIES(ROW) \
	ROW(FIELD_SM_CLOCK,                    "DCGM_FI_DEV_SM_CLOCK",                          100,  GAUGE,   INT,    CARD,  "MHz",        "sm_clock",           false, "SM clock (MHz).") \
	ROW(FIELD_MEM_CLOCK,                   "DCGM_FI_DEV_MEM_CLOCK",                         101,  GAUGE,   INT,    CARD,  "MHz",        NULL,                 false, "Memory clock (MHz).") \
	ROW(FIELD_VIDEO_CLOCK,                 "DCGM_FI_DEV_VIDEO_CLOCK",                       102,  GAUGE,   INT,    CARD,  "MHz",        NULL,                 false, "Video encoder and decoder clock (MHz).") \
	ROW(FIELD_MAX_SM_CLOCK,                "DCGM_FI_DEV_MAX_SM_CLOCK",                      113,  GAUGE,   INT,    CARD,  "MHz",        NULL,                 false, "Highest SM clock (MHz).") \
	ROW(FIELD_MAX_MEM_CLOCK,               "DCGM_FI_DEV_MAX_MEM_CLOCK",                     114,  GAUGE,   INT,    CARD,  "MHz",        NULL,                 false, "Highest memory clock (MHz).") \
	ROW(FIELD_MEMORY_TEMP,                 "DCGM_FI_DEV_MEMORY_TEMP",                       140,  GAUGE,   INT,    CARD,  "C",          "memory_temp",        false, "Temperature of the device memory (C).") \
	ROW(FIELD_GPU_TEMP,                    "DCGM_FI_DEV_GPU_TEMP",                          150,  GAUGE,   INT,    CARD,  "C",          "gpu_temp",           false, "Temperature of the GPU (C).") \
	ROW(FIELD_SLOWDOWN_TEMP,               "DCGM_FI_DEV_SLOWDOWN_TEMP",                     158,  GAUGE,   INT,    CARD,  "C",          NULL,                 false, "Temperature at which the clocks are lowered (C).") \
	ROW(FIELD_SHUTDOWN_TEMP,               "DCGM_FI_DEV_SHUTDOWN_TEMP",                     159,  GAUGE,   INT,    CARD,  "C",          NULL,                 false, "Temperature at which the GPU shuts down (C).") \
	ROW(FIELD_POWER_USAGE,                 "DCGM_FI_DEV_POWER_USAGE",                       155,  GAUGE,   DOUBLE, CARD,  "W",          "power_usage",        false, "Power draw (W).") \
	ROW(FIELD_POWER_USAGE_INSTANT,         "DCGM_FI_DEV_POWER_USAGE_INSTANT",               157,  GAUGE,   DOUBLE, CARD,  "W",          NULL,                 false, "Instantaneous power draw (W).") \
	ROW(FIELD_TOTAL_ENERGY,                "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",          156,  COUNTER, INT,    CARD,  "mJ",         NULL,                 true,  "Energy used since the driver was loaded (mJ).") \
	ROW(FIELD_POWER_LIMIT,                 "DCGM_FI_DEV_POWER_MGMT_LIMIT",                  160,  GAUGE,   DOUBLE, CARD,  "W",          NULL,                 false, "Configured power limit (W).") \
	ROW(FIELD_POWER_LIMIT_MIN,             "DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN",              161,  GAUGE,   DOUBLE, CARD,  "W",          NULL,                 false, "Lowest power limit that can be configured (W).") \
	ROW(FIELD_POWER_LIMIT_MAX,             "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX",              162,  GAUGE,   DOUBLE, CARD,  "W",          NULL,                 false, "Highest power limit that can be configured (W).") \
	ROW(FIELD_POWER_LIMIT_DEFAULT,         "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF",              163,  GAUGE,   DOUBLE, CARD,  "W",          NULL,                 false, "Default power limit (W).") \
	ROW(FIELD_ENFORCED_POWER_LIMIT,        "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",              164,  GAUGE,   DOUBLE, CARD,  "W",          NULL,                 false, "Power limit in force, the lowest of all limiters (W).") \
	ROW(FIELD_PSTATE,                      "DCGM_FI_DEV_PSTATE",                            190,  GAUGE,   INT,    CARD,  "0-15",       NULL,                 false, "Performance state, 0 is the fastest.") \
	ROW(FIELD_FAN_SPEED,                   "DCGM_FI_DEV_FAN_SPEED",                         191,  GAUGE,   INT,    CARD,  "%",          NULL,                 false, "Requested fan speed (%).") \
	ROW(FIELD_PCIE_REPLAY,                 "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",               202,  COUNTER, INT,    CARD,  "retries",    NULL,                 true,  "PCIe packets that were sent again.") \
	ROW(FIELD_PCIE_MAX_LINK_GEN,           "DCGM_FI_DEV_PCIE_MAX_LINK_GEN",                 235,  GAUGE,   INT,    CARD,  "generation", NULL,                 false, "Highest PCIe generation of the link.") \
	ROW(FIELD_PCIE_MAX_LINK_WIDTH,         "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",               236,  GAUGE,   INT,    CARD,  "lanes",      NULL,                 false, "Widest PCIe link.") \
	ROW(FIELD_PCIE_LINK_GEN,               "DCGM_FI_DEV_PCIE_LINK_GEN",                     237,  GAUGE,   INT,    CARD,  "generation", NULL,                 false, "PCIe generation of the link now.") \
	ROW(FIELD_PCIE_LINK_WIDTH,             "DCGM_FI_DEV_PCIE_LINK_WIDTH",                   238,  GAUGE,   INT,    CARD,  "lanes",      NULL,                 false, "PCIe lanes in use.") \
	ROW(FIELD_GPU_UTIL,                    "DCGM_FI_DEV_GPU_UTIL",                          203,  GAUGE,   INT,    WHOLE, "%",          "gpu_util",           false, "Share of time with a kernel on the GPU (%).") \
	ROW(FIELD_MEM_COPY_UTIL,               "DCGM_FI_DEV_MEM_COPY_UTIL",                     204,  GAUGE,   INT,    WHOLE, "%",          "mem_copy_util",      false, "Share of time the device memory was read or written (%).") \
	ROW(FIELD_ENC_UTIL,                    "DCGM_FI_DEV_ENC_UTIL",                          206,  GAUGE,   INT,    WHOLE, "%",          NULL,                 false, "Use of the video encoder (%).") \
	ROW(FIELD_DEC_UTIL,                    "DCGM_FI_DEV_DEC_UTIL",                          207,  GAUGE,   INT,    WHOLE, "%",          NULL,                 false, "Use of the video decoder (%).") \
	ROW(FIELD_CLOCKS_EVENT_REASONS,        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",              112,  GAUGE,   INT,    CARD,  "bit mask",   NULL,                 false, "Reasons why the clocks are reduced (bit mask).") \
	ROW(FIELD_XID_ERRORS,                  "DCGM_FI_DEV_XID_ERRORS",                        230,  GAUGE,   INT,    CARD,  "code",       NULL,                 false, "Code of the last XID error, 0 if none was reported.") \
	ROW(FIELD_POWER_VIOLATION,             "DCGM_FI_DEV_POWER_VIOLATION",                   240,  COUNTER, INT,    CARD,  "ns",         NULL,                 true,  "Time the clocks were reduced by the power limit (ns).") \
	ROW(FIELD_THERMAL_VIOLATION,           "DCGM_FI_DEV_THERMAL_VIOLATION",                 241,  COUNTER, INT,    CARD,  "ns",         NULL,                 true,  "Time the clocks were reduced by the temperature (ns).") \
	ROW(FIELD_SYNC_BOOST_VIOLATION,        "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",              242,  COUNTER, INT,    CARD,  "ns",         NULL,                 true,  "Time the clocks were reduced by sync boost (ns).") \
	ROW(FIELD_BOARD_LIMIT_VIOLATION,       "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",             243,  COUNTER, INT,    CARD,  "ns",         NULL,                 true,  "Time the clocks were reduced by a limit of the board (ns).") \
	ROW(FIELD_LOW_UTIL_VIOLATION,          "DCGM_FI_DEV_LOW_UTIL_VIOLATION",                244,  COUNTER, INT,    CARD,  "ns",         NULL,                 true,  "Time the clocks were reduced because of low utilization (ns).") \
	ROW(FIELD_RELIABILITY_VIOLATION,       "DCGM_FI_DEV_RELIABILITY_VIOLATION",             245,  COUNTER, INT,    CARD,  "ns",         NULL,                 true,  "Time the clocks were reduced for reliability (ns).") \
	ROW(FIELD_APP_CLOCKS_VIOLATION,        "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION",        246,  COUNTER, INT,    CARD,  "ns",         NULL,                 true,  "Time below the application clocks (ns).") \
	ROW(FIELD_BASE_CLOCKS_VIOLATION,       "DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION",       247,  COUNTER, INT,    CARD,  "ns",         NULL,                 true,  "Time below the base clocks (ns).") \
	ROW(FIELD_FB_TOTAL,                    "DCGM_FI_DEV_FB_TOTAL",                          250,  GAUGE,   INT,    EACH,  "MiB",        NULL,                 false, "Device memory (MiB).") \
	ROW(FIELD_FB_FREE,                     "DCGM_FI_DEV_FB_FREE",                           251,  GAUGE,   INT,    EACH,  "MiB",        NULL,                 false, "Device memory free (MiB).") \
	ROW(FIELD_FB_USED,                     "DCGM_FI_DEV_FB_USED",                           252,  GAUGE,   INT,    EACH,  "MiB",        "fb_used",            false, "Device memory used (MiB).") \
	ROW(FIELD_FB_RESERVED,                 "DCGM_FI_DEV_FB_RESERVED",                       253,  GAUGE,   INT,    EACH,  "MiB",        NULL,                 false, "Device memory reserved by the driver (MiB).") \
	ROW(FIELD_FB_USED_PERCENT,             "DCGM_FI_DEV_FB_USED_PERCENT",                   254,  GAUGE,   DOUBLE, EACH,  "0-1",        NULL,                 false, "Share of the usable device memory that is used (0-1).") \
	ROW(FIELD_BAR1_TOTAL,                  "DCGM_FI_DEV_BAR1_TOTAL",                        90,   GAUGE,   INT,    CARD,  "MiB",        NULL,                 false, "BAR1 memory (MiB).") \
	ROW(FIELD_BAR1_USED,                   "DCGM_FI_DEV_BAR1_USED",                         92,   GAUGE,   INT,    CARD,  "MiB",        NULL,                 false, "BAR1 memory used (MiB).") \
	ROW(FIELD_BAR1_FREE,                   "DCGM_FI_DEV_BAR1_FREE",                         93,   GAUGE,   INT,    CARD,  "MiB",        NULL,                 false, "BAR1 memory free (MiB).") \
	ROW(FIELD_ECC_SBE_VOL,                 "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",                 310,  COUNTER, INT,    CARD,  "errors",     NULL,                 false, "Corrected memory errors since the last reset.") \
	ROW(FIELD_ECC_DBE_VOL,                 "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",                 311,  COUNTER, INT,    CARD,  "errors",     NULL,                 false, "Uncorrectable memory errors since the last reset.") \
	ROW(FIELD_ECC_SBE_AGG,                 "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",                 312,  COUNTER, INT,    CARD,  "errors",     NULL,                 false, "Corrected memory errors over the lifetime of the GPU.") \
	ROW(FIELD_ECC_DBE_AGG,                 "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",                 313,  COUNTER, INT,    CARD,  "errors",     NULL,                 false, "Uncorrectable memory errors over the lifetime of the GPU.") \
	ROW(FIELD_RETIRED_SBE,                 "DCGM_FI_DEV_RETIRED_SBE",                       390,  COUNTER, INT,    CARD,  "pages",      NULL,                 false, "Pages retired for corrected errors.") \
	ROW(FIELD_RETIRED_DBE,                 "DCGM_FI_DEV_RETIRED_DBE",                       391,  COUNTER, INT,    CARD,  "pages",      NULL,                 false, "Pages retired for uncorrectable errors.") \
	ROW(FIELD_RETIRED_PENDING,             "DCGM_FI_DEV_RETIRED_PENDING",                   392,  COUNTER, INT,    CARD,  "pages",      NULL,                 false, "Pages that the next reset will retire.") \
	ROW(FIELD_UNCORRECTABLE_REMAPPED_ROWS, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",       393,  COUNTER, INT,    CARD,  "rows",       NULL,                 false, "Memory rows remapped for uncorrectable errors.") \
	ROW(FIELD_CORRECTABLE_REMAPPED_ROWS,   "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",         394,  COUNTER, INT,    CARD,  "rows",       NULL,                 false, "Memory rows remapped for corrected errors.") \
	ROW(FIELD_ROW_REMAP_FAILURE,           "DCGM_FI_DEV_ROW_REMAP_FAILURE",                 395,  GAUGE,   INT,    CARD,  "0/1",        NULL,                 false, "1 if a row could not be remapped.") \
	ROW(FIELD_ROW_REMAP_PENDING,           "DCGM_FI_DEV_ROW_REMAP_PENDING",                 396,  GAUGE,   INT,    CARD,  "0/1",        NULL,                 false, "1 if a row is remapped at the next reset.") \
	ROW(FIELD_NVLINK_CRC_FLIT_ERRORS,      "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 409,  COUNTER, INT,    CARD,  "errors",     NULL,                 true,  "NVLink flow-control CRC errors, all links.") \
	ROW(FIELD_NVLINK_CRC_DATA_ERRORS,      "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 419,  COUNTER, INT,    CARD,  "errors",     NULL,                 true,  "NVLink data CRC errors, all links.") \
	ROW(FIELD_NVLINK_REPLAY_ERRORS,        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",   429,  COUNTER, INT,    CARD,  "errors",     NULL,                 true,  "NVLink replays, all links.") \
	ROW(FIELD_NVLINK_RECOVERY_ERRORS,      "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 439,  COUNTER, INT,    CARD,  "errors",     NULL,                 true,  "NVLink recoveries, all links.") \
	ROW(FIELD_NVLINK_BANDWIDTH_TOTAL,      "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",            449,  COUNTER, INT,    CARD,  "1000 KiB/s", NULL,                 false, "NVLink data rate in both directions, all links (1000 KiB/s; a rate, as in DCGM).") \
	ROW(FIELD_VGPU_LICENSE_STATUS,         "DCGM_FI_DEV_VGPU_LICENSE_STATUS",               526,  GAUGE,   INT,    CARD,  "0/1",        NULL,                 false, "1 if the virtual GPU has a licence.") \
	ROW(FIELD_GR_ENGINE_ACTIVE,            "DCGM_FI_PROF_GR_ENGINE_ACTIVE",                 1001, GAUGE,   DOUBLE, EACH,  "0-1",        "gr_engine_active",   false, "Share of time the graphics or compute engine was active (0-1).") \
	ROW(FIELD_SM_ACTIVE,                   "DCGM_FI_PROF_SM_ACTIVE",                        1002, GAUGE,   DOUBLE, EACH,  "0-1",        "sm_active",          false, "Share of time an SM held a warp, mean over the SMs (0-1).") \
	ROW(FIELD_SM_OCCUPANCY,                "DCGM_FI_PROF_SM_OCCUPANCY",                     1003, GAUGE,   DOUBLE, EACH,  "0-1",        "sm_occupancy",       false, "Resident warps relative to the maximum (0-1).") \
	ROW(FIELD_PIPE_TENSOR_ACTIVE,          "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",               1004, GAUGE,   DOUBLE, EACH,  "0-1",        "pipe_tensor_active", false, "Share of cycles the tensor pipe was active (0-1).") \
	ROW(FIELD_DRAM_ACTIVE,                 "DCGM_FI_PROF_DRAM_ACTIVE",                      1005, GAUGE,   DOUBLE, EACH,  "0-1",        "dram_active",        false, "Share of cycles the device memory interface was active (0-1).") \
	ROW(FIELD_PIPE_FP64_ACTIVE,            "DCGM_FI_PROF_PIPE_FP64_ACTIVE",                 1006, GAUGE,   DOUBLE, EACH,  "0-1",        NULL,                 false, "Share of cycles the FP64 pipe was active (0-1).") \
	ROW(FIELD_PIPE_FP32_ACTIVE,            "DCGM_FI_PROF_PIPE_FP32_ACTIVE",                 1007, GAUGE,   DOUBLE, EACH,  "0-1",        NULL,                 false, "Share of cycles the FP32 pipe was active (0-1).") \
	ROW(FIELD_PIPE_FP16_ACTIVE,            "DCGM_FI_PROF_PIPE_FP16_ACTIVE",                 1008, GAUGE,   DOUBLE, EACH,  "0-1",        NULL,                 false, "Share of cycles the FP16 pipe was active (0-1).") \
	ROW(FIELD_PCIE_TX_BYTES,               "DCGM_FI_PROF_PCIE_TX_BYTES",                    1009, GAUGE,   INT,    EACH,  "B/s",        "pcie_tx_bytes",      false, "PCIe bytes per second from GPU to host.") \
	ROW(FIELD_PCIE_RX_BYTES,               "DCGM_FI_PROF_PCIE_RX_BYTES",                    1010, GAUGE,   INT,    EACH,  "B/s",        "pcie_rx_bytes",      false, "PCIe bytes per second from host to GPU.") \
	ROW(FIELD_NVLINK_TX_BYTES,             "DCGM_FI_PROF_NVLINK_TX_BYTES",                  1011, GAUGE,   INT,    EACH,  "B/s",        "nvlink_tx_bytes",    false, "NVLink bytes per second sent, all links.") \
	ROW(FIELD_NVLINK_RX_BYTES,             "DCGM_FI_PROF_NVLINK_RX_BYTES",                  1012, GAUGE,   INT,    EACH,  "B/s",        "nvlink_rx_bytes",    false, "NVLink bytes per second received, all links.") \
	ROW(FIELD_PIPE_TENSOR_IMMA_ACTIVE,     "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE",          1013, GAUGE,   DOUBLE, EACH,  "0-1",        NULL,                 false, "Share of cycles the tensor pipe did integer work (0-1).") \
	ROW(FIELD_PIPE_TENSOR_HMMA_ACTIVE,     "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE",          1014, GAUGE,   DOUBLE, EACH,  "0-1",        NULL,                 false, "Share of cycles the tensor pipe did FP16 work (0-1).") \
	ROW(FIELD_PIPE_TENSOR_DFMA_ACTIVE,     "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE",          1015, GAUGE,   DOUBLE, EACH,  "0-1",        NULL,                 false, "Share of cycles the tensor pipe did FP64 work (0-1).") \
	ROW(FIELD_PIPE_INT_ACTIVE,             "DCGM_FI_PROF_PIPE_INT_ACTIVE",                  1016, GAUGE,   DOUBLE, EACH,  "0-1",        NULL,                 false, "Share of cycles the integer pipe was active (0-1).") \
	ROW(FIELD_RECOVERY_ACTION,             "gpuscale_gpu_recovery_action",                  0,    GAUGE,   INT,    CARD,  "action",     NULL,                 false, "Action the driver requires: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset, 5 recover the IMEX domain.")
// clang-format on

#endif
