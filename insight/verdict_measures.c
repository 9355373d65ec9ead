// SPDX-License-Identifier: Apache-2.0
// The measures of the table of verdicts, in PromQL. What an exporter does not have gives no series, and its measure is
// missing.
#include "insight/gpu_series.h"
#include "insight/verdict.h"

#define BY_DEVICE(x) GPU_BY_DEVICE(x)
#define BY_GPU(x)    "max by (UUID) (" x ")"
#define MEAN(metric) "avg_over_time(" metric "[$W])"
#define ACTIVE(part) "clamp_max(" BY_DEVICE(MEAN("DCGM_FI_PROF_" part)) ", 1)"

// The mean of a series that exists now, throughout and a long window ago: the pod of the series was there all the time.
#define MEAN_LONG(metric) "avg_over_time(" metric "[$L]) and " metric " and " metric " offset $L"

// The codes for which gpuscale-exporter check says drain, or more.
#define XIDS "46|48|54|61|62|64|74|79|95|110|119|120|136|140|142|143|151|155|156|158"
// The last code, which is all that dcgm-exporter has by default: each step of the long window in which a fatal code
// took the place of the code before it, which a harmless code may have replaced since.
#define XID_LAST                                                                                                       \
	"sum_over_time((label_replace(count_values by (UUID) (\"xid\", max by (UUID) (DCGM_FI_DEV_XID_ERRORS) != max " \
	"by (UUID) (DCGM_FI_DEV_XID_ERRORS offset $S)), \"fatal\", \"yes\", \"xid\", \"" XIDS "\") and on (fatal) "    \
	"label_replace(vector(1), \"fatal\", \"yes\", \"\", \"\"))[$L:$S])"
#define XID_COUNTER "gpuscale_gpu_xid_errors_total{xid=~\"" XIDS "\"}"
// Most codes appear with their first error; 48 is there from the start, and shows that the GPU was watched.
#define XID_NEW                                                                                                        \
	"(" XID_COUNTER " > 0) unless " XID_COUNTER                                                                    \
	" offset $L and on (UUID) gpuscale_gpu_xid_errors_total{xid=\"48\"} offset $L"

#define MEMORY_ALL BY_DEVICE("DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE")
#define EXPORTER   "pod!=\"\",pod!~\"" GPU_EXPORTER_PODS "\""
// A pod that was not on this GPU a window ago, or memory that was empty within the window.
#define LOADING                                                                                                        \
	"max by (UUID, GPU_I_ID) (DCGM_FI_DEV_FB_USED{exported_pod!=\"\"} unless on (UUID, GPU_I_ID, "                 \
	"exported_namespace, exported_pod) DCGM_FI_DEV_FB_USED offset $W or "                                          \
	"DCGM_FI_DEV_FB_USED{exported_pod=\"\"," EXPORTER                                                              \
	"} unless on (UUID, GPU_I_ID, namespace, pod) DCGM_FI_DEV_FB_USED offset $W) * 0 + 1 or "                      \
	"(min_over_time(" /* minimum of the fill level: a process that starts again keeps its pod */                   \
	"(" BY_DEVICE("DCGM_FI_DEV_FB_USED") " / " MEMORY_ALL ")[$W:$S]) < 0.05 and " BY_DEVICE(                       \
	        "DCGM_FI_DEV_FB_USED") " / " MEMORY_ALL " > 0.05) * 0 + 1"

// PromQL has no bit operators: bit 2^n is set when floor(mask / 2^n) % 2 is 1. 32: software thermal, 64: hardware
// thermal, 128: power brake.
#define MASK      "(DCGM_FI_DEV_CLOCKS_EVENT_REASONS or DCGM_FI_DEV_CLOCK_THROTTLE_REASONS)"
#define BIT(bit)  "floor(" MASK " / " #bit ") % 2"
#define THROTTLED BY_GPU("avg_over_time(clamp_max(" BIT(32) " + " BIT(64) " + " BIT(128) ", 1)[$W:$S])")

// The negotiated link of the last window against that which the card and the board can have. A lane of the third
// generation carries 0.985 GB/s, and each generation twice as much. An idle link falls back, so only a busy GPU counts.
#define LINK_NOW(what) BY_GPU("max_over_time(DCGM_FI_DEV_PCIE_" what "[$W])")
#define LINK_MAX(what) BY_GPU("DCGM_FI_DEV_PCIE_MAX_" what)
#define WHEN_BUSY      " and on (UUID) " BY_GPU("$B") " > 0.5"
#define LINK                                                                                                           \
	"2 ^ (" LINK_NOW("LINK_GEN") " - " LINK_MAX("LINK_GEN") ") * " LINK_NOW("LINK_WIDTH") " / " LINK_MAX(          \
	        "LINK_WIDTH") WHEN_BUSY
#define LINK_BYTES "(0.985e9 * 2 ^ (" LINK_NOW("LINK_GEN") " - 3) * " LINK_NOW("LINK_WIDTH") ")"

// Against the busy GPUs of the same model. A GPU that draws the power of its model is not slow: an H100 that multiplies
// matrices at its limit of 700 W clocks at 70 % of one that copies.
#define UNLESS_FULL_POWER                                                                                              \
	" unless on (UUID) " BY_GPU(MEAN("DCGM_FI_DEV_POWER_USAGE")) " > 0.95 * " BY_GPU(                              \
	        "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF")
#define CLOCK_BUSY "(max by (UUID, modelName) (" MEAN("DCGM_FI_DEV_SM_CLOCK") ")" WHEN_BUSY UNLESS_FULL_POWER ")"
#define CLOCK      CLOCK_BUSY " / on (modelName) group_left () quantile by (modelName) (0.5, " CLOCK_BUSY ")"

// How far a device swings between a high and a low level: within the windows of gpuscale-exporter, whose readings are
// down to 100 ms apart, the SM activity, or the power as a part of its limit; else twice the deviation of the SM
// activity that passes its mean downwards more than twice. A square wave from 0.9 to 0.1 swings by 0.8, a single step
// does not.
#define WINDOW(part, edge) "avg_over_time(gpuscale_gpu_" part "_window_" edge "[$W])"
#define IN_WINDOWS(part)   BY_DEVICE(WINDOW(part, "max") " - " WINDOW(part, "min"))
#define SWING                                                                                                          \
	IN_WINDOWS("sm_active")                                                                                        \
	" or " IN_WINDOWS(                                                                                             \
	        "power_usage") " / on (UUID) group_left () max by (UUID) "                                             \
	                       "(DCGM_FI_DEV_ENFORCED_POWER_LIMIT) or 2 * " BY_DEVICE(                                 \
	                               "stddev_over_time(" GPU_SM                                                      \
	                               "[$W])") " and " BY_DEVICE("resets((" GPU_SM                                    \
	                                                          " > bool " MEAN(GPU_SM) ")[$W:$S])") " > 2"
// Of the limit. The instances of a GPU share its power, so it shows nothing about one of them.
#define POWER                                                                                                          \
	BY_GPU(MEAN("DCGM_FI_DEV_POWER_USAGE") " unless on (UUID) DCGM_FI_DEV_FB_USED" GPU_INSTANCE)                   \
	" / " BY_GPU("DCGM_FI_DEV_ENFORCED_POWER_LIMIT or DCGM_FI_DEV_POWER_MGMT_LIMIT")
#define ERRORS(what) "(" BY_GPU("increase(DCGM_FI_DEV_NVLINK_" what "_ERROR_COUNT_TOTAL[$L])") " > 0)"
#define NVLINK       ERRORS("RECOVERY") " or " ERRORS("REPLAY") " or " ERRORS("CRC_DATA")

#define BY_POD(x) "by (namespace, pod) (" x "{container!=\"\",pod!=\"\"}"
#define CPU_LIMIT                                                                                                      \
	"(sum " BY_POD("container_spec_cpu_quota") " / "                                                               \
	                                           "container_spec_cpu_period{container!=\"\",pod!=\"\"}) or "         \
	                                           "sum by (namespace, pod) "                                          \
	                                           "(kube_pod_container_resource_limits{resource=\"cpu\"}))"
// The trainer's own metrics, with honor_labels or without.
#define TRAINER(metric)                                                                                                \
	"max by (namespace, pod) (label_replace(label_replace(rate(" metric "[$W]), \"pod\", \"$1\", \"exported_pod\"" \
	", \"(.+)\"), \"namespace\", \"$1\", \"exported_namespace\", \"(.+)\"))"
#define NODENAME " * on (job, instance) group_left (nodename) topk by (job, instance) (1, node_uname_info)"

#define OOM                                                                                                            \
	"max by (namespace, pod) (kube_pod_container_status_last_terminated_reason{reason=\"OOMKilled\",pod!=\"\"} "   \
	"== 1 and on (namespace, pod, container) increase(kube_pod_container_status_restarts_total[$L]) > 0)"
// Errors of network cards: InfiniBand from node-exporter, EFA from the exporter of its counters.
#define NIC(of, metric, range) "(max by (nodename) (" of "(node_" metric "[" range "])" NODENAME ") > 0)"

// clang-format off
#define NIC_EVENTS(metric) NIC("increase", metric, "$L")
#define NIC_ERRORS \
	NIC_EVENTS("infiniband_link_downed_total") " or " \
	NIC_EVENTS("infiniband_link_error_recovery_total") " or " \
	NIC_EVENTS("infiniband_local_link_integrity_errors_total") " or " \
	NIC_EVENTS("infiniband_port_errors_received_total") " or " \
	NIC_EVENTS("amazonefa_retrans_timeout_events") " or " \
	NIC_EVENTS("amazonefa_rdma_read_wr_err") " or " \
	NIC_EVENTS("amazonefa_rdma_write_wr_err")
#define NIC_DROPS NIC("rate", "infiniband_port_discards_received_total", "$W") " or " NIC("rate", "amazonefa_rx_drops", "$W")
static const struct verdict_measure_info measures[] = {
	[MEASURE_BUSY]          = {"busy",          "busy",            SCOPE_DEVICE, FOLD_AVG, UNIT_RATIO, "$B"},
	[MEASURE_BUSY_LONG]     = {"busy_long",     "busy, long",      SCOPE_DEVICE, FOLD_MAX, UNIT_RATIO, GPU_BUSY(MEAN_LONG)},
	[MEASURE_SM]            = {"sm_active",     "SM",              SCOPE_DEVICE, FOLD_AVG, UNIT_RATIO, ACTIVE("SM_ACTIVE")},
	[MEASURE_OCCUPANCY]     = {"sm_occupancy",  "occupancy",       SCOPE_DEVICE, FOLD_AVG, UNIT_RATIO, ACTIVE("SM_OCCUPANCY")},
	[MEASURE_TENSOR]        = {"tensor_active", "tensor",          SCOPE_DEVICE, FOLD_AVG, UNIT_RATIO, ACTIVE("PIPE_TENSOR_ACTIVE")},
	[MEASURE_DRAM]          = {"dram_active",   "DRAM",            SCOPE_DEVICE, FOLD_AVG, UNIT_RATIO, ACTIVE("DRAM_ACTIVE")},
	[MEASURE_MEMORY]        = {"memory_used",   "memory",          SCOPE_DEVICE, FOLD_MAX, UNIT_RATIO, BY_DEVICE("DCGM_FI_DEV_FB_USED") " / " MEMORY_ALL},
	[MEASURE_PCIE_RX]       = {"pcie_rx",       "PCIe in",         SCOPE_GPU,    FOLD_AVG, UNIT_BYTES_PER_SECOND, BY_GPU(MEAN("DCGM_FI_PROF_PCIE_RX_BYTES"))},
	[MEASURE_PCIE_SHARE]    = {"pcie_rx_share", "PCIe share",      SCOPE_GPU,    FOLD_AVG, UNIT_RATIO, BY_GPU(MEAN("DCGM_FI_PROF_PCIE_RX_BYTES")) " / " LINK_BYTES},
	[MEASURE_PCIE_PEAK]     = {"pcie_rx_peak",  "PCIe peaks",      SCOPE_GPU,    FOLD_AVG, UNIT_RATIO, BY_GPU(WINDOW("pcie_rx_bytes", "max")) " / " LINK_BYTES},
	[MEASURE_SWING]         = {"swing",         "swing",           SCOPE_DEVICE, FOLD_AVG, UNIT_RATIO, SWING},
	[MEASURE_LINK]          = {"pcie_link",     "PCIe link",       SCOPE_GPU,    FOLD_MIN, UNIT_RATIO, LINK},
	[MEASURE_CLOCK]         = {"sm_clock",      "clock of median", SCOPE_GPU,    FOLD_MIN, UNIT_RATIO, BY_GPU(CLOCK)},
	[MEASURE_POWER]         = {"power",         "power of limit",  SCOPE_GPU,    FOLD_AVG, UNIT_RATIO, POWER},
	[MEASURE_THROTTLED]     = {"throttled",     "throttled",       SCOPE_GPU,    FOLD_MAX, UNIT_RATIO, THROTTLED},
	[MEASURE_THERMAL]       = {"thermal",       "slowed by heat",  SCOPE_GPU,    FOLD_MAX, UNIT_RATIO, BY_GPU("rate(DCGM_FI_DEV_THERMAL_VIOLATION[$W])") " / 1e9"},
	[MEASURE_XID]           = {"xid",           "fatal XIDs",      SCOPE_GPU,    FOLD_MAX, UNIT_COUNT, BY_GPU("max_over_time(DCGM_EXP_XID_ERRORS_COUNT{xid=~\"" XIDS "\"}[$L]) > 0 or increase(" XID_COUNTER "[$L]) > 0 or " XID_NEW " or " XID_LAST)},
	[MEASURE_ECC]           = {"ecc",           "ECC errors",      SCOPE_GPU,    FOLD_MAX, UNIT_COUNT, BY_GPU("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")},
	[MEASURE_REMAP]         = {"remap_failed",  "remap failure",   SCOPE_GPU,    FOLD_MAX, UNIT_COUNT, BY_GPU("DCGM_FI_DEV_ROW_REMAP_FAILURE")},
	[MEASURE_NVLINK]        = {"nvlink_errors", "NVLink errors",   SCOPE_GPU,    FOLD_MAX, UNIT_COUNT, NVLINK},
	[MEASURE_PCIE_REPLAY]   = {"pcie_replays",  "PCIe replays/s",  SCOPE_GPU,    FOLD_MAX, UNIT_PER_SECOND, BY_GPU("rate(DCGM_FI_DEV_PCIE_REPLAY_COUNTER[$W])")},
	[MEASURE_SHARE]         = {"gpu_share",     "share of GPU",    SCOPE_DEVICE, FOLD_AVG, UNIT_RATIO, GPU_INSTANCE_SHARE},
	[MEASURE_LOADING]       = {"loading",       "loading",         SCOPE_DEVICE, FOLD_MAX, UNIT_COUNT, LOADING},
	[MEASURE_CPU]           = {"cpu",           "CPU of limit",    SCOPE_POD,    FOLD_MAX, UNIT_RATIO, "sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{container!=\"\",pod!=\"\"}[$W])) / (" CPU_LIMIT ")"},
	[MEASURE_CPU_THROTTLED] = {"cpu_throttled", "CPU throttled",   SCOPE_POD,    FOLD_MAX, UNIT_RATIO, "sum by (namespace, pod) (rate(container_cpu_cfs_throttled_periods_total{container!=\"\",pod!=\"\"}[$W])) / sum by (namespace, pod) (rate(container_cpu_cfs_periods_total{container!=\"\",pod!=\"\"}[$W]))"},
	[MEASURE_DISK_WAIT]     = {"disk_wait",     "disk wait",       SCOPE_POD,    FOLD_MAX, UNIT_RATIO, "max by (namespace, pod) (rate(container_pressure_io_waiting_seconds_total{pod!=\"\"}[$W]))"},
	[MEASURE_DATA_WAIT]     = {"data_wait",     "data wait",       SCOPE_POD,    FOLD_MAX, UNIT_RATIO, TRAINER("training_data_wait_seconds_total")},
	[MEASURE_COLLECTIVE]    = {"collective",    "collectives",     SCOPE_POD,    FOLD_MAX, UNIT_RATIO, TRAINER("training_collective_seconds_total")},
	[MEASURE_OOM]           = {"oom",           "out of memory",   SCOPE_POD,    FOLD_MAX, UNIT_COUNT, OOM},
	[MEASURE_NODE_IOWAIT]   = {"node_iowait",   "node iowait",     SCOPE_NODE,   FOLD_MAX, UNIT_RATIO, "avg by (nodename) (rate(node_cpu_seconds_total{mode=\"iowait\"}[$W])" NODENAME ")"},
	[MEASURE_NODE_NETWORK]  = {"node_network",  "node network in", SCOPE_NODE,   FOLD_MAX, UNIT_RATIO, "max by (nodename) (rate(node_network_receive_bytes_total[$W]) / (node_network_speed_bytes > 0)" NODENAME ")"},
	[MEASURE_NIC_ERRORS]    = {"nic_errors",    "network errors",  SCOPE_NODE,   FOLD_MAX, UNIT_COUNT, NIC_ERRORS},
	[MEASURE_NIC_DROPS]     = {"nic_drops",     "network drops/s", SCOPE_NODE,   FOLD_MAX, UNIT_PER_SECOND, NIC_DROPS},
};
// clang-format on
_Static_assert(sizeof measures / sizeof measures[0] == MEASURE__COUNT, "one row per measure");

const struct verdict_measure_info *verdict_measure_info(enum verdict_measure m)
{
	return &measures[m];
}
