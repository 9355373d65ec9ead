// SPDX-License-Identifier: Apache-2.0
// The tables of verdicts: the measures, the conditions, and the texts.
#include "insight/verdict.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "insight/gpu_series.h"

// ---- measures ----

// What an exporter does not have gives no series, and its measure is missing.

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
const struct verdict_measure_info verdict_measures[] = {
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
_Static_assert(sizeof verdict_measures / sizeof *verdict_measures == MEASURE__COUNT, "one row per measure");

// ---- texts ----

// The meaning and the remedy of each verdict: the text of the command, the alert and docs/diagnosis.md.
// clang-format off
const struct verdict_info verdict_infos[] = {
	[VERDICT_HARDWARE] = {
		"hardware", LEVEL_FAULT, LOSS_NONE, "a GPU reports a hardware fault",
		"Move the work, drain the node, then reset or replace the GPU.",
		"The driver reported a fatal XID, the memory has uncorrectable errors, or the GPU has no spare memory rows. "
		"Results may be wrong.",
		"- Run `gpuscale-exporter check` on the node: it names the action for the code.\n"
		"- Restart the job from a checkpoint that is older than the error.\n"},
	[VERDICT_FABRIC] = {
		"fabric", LEVEL_FAULT, LOSS_NONE, "a link between GPUs, to the host or to other nodes has transfer errors",
		"Check cables, NVSwitch, riser card and network card; take the GPU out of multi-GPU jobs.",
		"NVLink had CRC errors, or repeated or recovered transfers, or the PCIe link repeated more than one packet a second, or a "
		"network card of the node (InfiniBand, EFA) had errors in the long window or dropped more than one packet a second. The "
		"data arrives late, and every collective waits for the slowest link.",
		"- Run `nvidia-smi nvlink -e` and look for one link whose errors grow.\n"
		"- Network: `ibqueryerrors`, or `rdma -p statistic show` for EFA, shows the port.\n"
		"- Run a bandwidth test of the collectives before the next large job ([gate](#before-a-job-starts)).\n"},
	[VERDICT_THROTTLED] = {
		"throttled", LEVEL_FAULT, LOSS_CLOCK, "heat or the power brake slows a GPU down",
		"Check cooling and power; keep the GPU out of gangs until it is fixed.",
		"The driver lowered the clocks because of heat or the power brake for more than 5 % of the window. The GPU still looks "
		"busy, and a synchronous job runs at its speed.",
		"- Compare the temperature with that of the other GPUs in the chassis: fan, airflow, inlet.\n"
		"- A power cap that the operator set is not counted.\n"},
	[VERDICT_OOM] = {
		"oom", LEVEL_FAULT, LOSS_NONE, "the kernel killed a container for its memory",
		"Raise the memory limit of the container, or load less data at a time.",
		"A container of the pod was started again within the long window, and its last end was an OOM kill: exit status 137, and "
		"no word in its log. That is memory of the host. Memory of the GPU that runs out is an exception of the framework instead.",
		"- Compare `container_memory_working_set_bytes` with the limit; shared memory (`/dev/shm`) of data loaders counts.\n"
		"- Fewer data-loading workers, and less prefetching, need less.\n"
		"- Memory that grows evenly until the kill is a [leak](#stragglers-and-leaks).\n"},
	[VERDICT_LOADING] = {
		"loading", LEVEL_OK, LOSS_NONE, "the workload has just started",
		"Wait for one window.",
		"The pod got its GPU, or the memory of the GPU began to fill, within the window. The averages still contain what ran "
		"before, so no other verdict is possible.",
		"- A workload that keeps this verdict restarts repeatedly: check the last state of its container.\n"},
	[VERDICT_IDLE] = {
		"idle", LEVEL_ADVICE, LOSS_ALL, "the GPUs are allocated and do nothing",
		"Scale down, or stop the workload.",
		"A kernel ran in less than 5 % of the long window.",
		"- Give the workload a policy that scales it to its load.\n"
		"- Stop forgotten notebooks.\n"},
	[VERDICT_WAITING] = {
		"waiting", LEVEL_OK, LOSS_ALL, "the GPUs have no work at present",
		"Nothing to do yet; after the long window, the verdict is idle.",
		"A kernel ran in less than 5 % of the window, but in more of the long window, or the pod is newer than that.",
		"- This is expected between requests, at a checkpoint and during an evaluation on the CPU.\n"},
	[VERDICT_HUNG] = {
		"hung", LEVEL_FAULT, LOSS_ALL, "the GPUs are busy and move no data: a collective hangs",
		"Find the dead rank, and restart the job from its checkpoint.",
		"A kernel runs all the time, but neither memory nor tensor cores work. A collective that waits for a rank that has exited "
		"looks like this.",
		"- Compare the ranks: the GPU of the dead rank is not busy.\n"
		"- Set a time-out for collectives, so that the job fails instead.\n"},
	[VERDICT_SLOW_LINK] = {
		"slow_link", LEVEL_FAULT, LOSS_NONE, "the PCIe link is below its maximum",
		"Reseat the card or replace the riser; check the BIOS setting of the slot.",
		"The link of a busy GPU has fewer lanes or an older generation than the card and the board allow.",
		"- `nvidia-smi -q -d PCIE`, or `lspci -vv` on the node, shows the negotiated link as downgraded.\n"},
	[VERDICT_SLOW_CLOCK] = {
		"slow_clock", LEVEL_FAULT, LOSS_CLOCK, "the clock of a GPU is below 90 % of the median of its model",
		"Check the power cap, cooling and locked clocks of this GPU.",
		"The SM clock of a busy GPU is below 90 % of the median of the busy GPUs of the same model. GPUs that draw 95 % "
		"of the default power limit of their model do not count: heavy work lowers the clock there.",
		"- `nvidia-smi -q -d CLOCK,PERFORMANCE` shows locked clocks and the reasons for low ones.\n"
		"- Without `DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF`, work that draws more power than others also gives this verdict: "
		"compare the GPUs of one job.\n"},
	[VERDICT_COMMUNICATION] = {
		"communication", LEVEL_ADVICE, LOSS_SM, "collectives take more than 20 % of the time",
		"Overlap communication with computation, or use fewer and closer GPUs.",
		"The training hook measured that the ranks spend more than 20 % of the time in collectives.",
		"- Overlap the gradient exchange with the backward pass, and use larger buckets.\n"
		"- Accumulate gradients over several batches, or compress them.\n"
		"- Keep a job inside one NVLink domain.\n"
		"- Look for a straggler with `gpuscale detect`: the other ranks wait for it in collectives.\n"},
	[VERDICT_LOADER] = {
		"loader", LEVEL_ADVICE, LOSS_SM, "the GPUs wait for the data loader",
		"Add loader workers, pin memory, and prefetch to the GPU.",
		"The SMs are active less than 30 % of the time while data streams in over PCIe, or the training hook measured that the loop "
		"waits for data; or the data arrives in bursts that use more than half of the PCIe link, and the SM activity swings.",
		"- Raise `num_workers`, set `pin_memory` and `persistent_workers`, and prefetch several batches.\n"
		"- Decode on the GPU (DALI), or store the data in the format that the model reads.\n"},
	[VERDICT_STORAGE] = {
		"storage", LEVEL_ADVICE, LOSS_SM, "the data loader waits for disk or network",
		"Cache the data near the GPUs, and read it in large pieces.",
		"The SMs are active less than 30 % of the time, and the pod waits for its disk, the CPUs of the node wait for I/O, or the "
		"network of the node is full.",
		"- Pack many small files into few large ones.\n"
		"- Cache the data on local NVMe. Object storage has limits per prefix and per connection.\n"},
	[VERDICT_PREPROCESSING] = {
		"preprocessing", LEVEL_ADVICE, LOSS_SM, "the CPUs of the pod are the limit",
		"Raise the CPU limit, or move transforms to the GPU.",
		"The SMs are active less than 30 % of the time, and the pod uses more than 80 % of its CPU limit or is throttled by it.",
		"- Raise or remove the CPU limit: 8 cores per GPU is a usual start for image data.\n"
		"- Simplify transforms, run them once offline, or run them on the GPU.\n"},
	[VERDICT_SAWTOOTH] = {
		"sawtooth", LEVEL_ADVICE, LOSS_SM, "the GPUs alternate between full work and none",
		"Prefetch the next batch, and overlap copies, checkpoints and logging with the work.",
		"The activity of the SMs, or the power where it is unknown, swings by half of its range or more again and again, so that "
		"the mean hides the gaps. gpuscale-exporter shows swings within its window; without it, only those that are slower than "
		"the scrapes are found.",
		"- Measure with `gpuscale-exporter --interval 100ms` to see gaps of less than a second.\n"
		"- Find what runs between the batches with `gpuscale trace`.\n"},
	[VERDICT_FAKE_LOAD] = {
		"fake_load", LEVEL_ADVICE, LOSS_SM, "GPU_UTIL shows a busy GPU, and its SMs are idle",
		"Use larger batches; do not scale on GPU_UTIL.",
		"A kernel runs most of the time, but it occupies few SMs: small kernels run one after the other, or a kernel polls. Without "
		"SM_ACTIVE, power shows it: a GPU that is busy at less than 35 % of its power limit does little work.",
		"- Increase the batch size, or let several replicas share the GPU (MIG, MPS, time slicing).\n"
		"- Capture the loop as a CUDA graph, or use `torch.compile`.\n"},
	[VERDICT_UNDERFILLED] = {
		"underfilled", LEVEL_ADVICE, LOSS_SM, "there is too little work for the GPUs",
		"Use larger batches or fewer replicas.",
		"The SMs are active less than 30 % of the time, and nothing else is known to be the limit.",
		"- Inference: scale down, or share a GPU between replicas.\n"
		"- Training: increase the batch size, and check where the host spends its time with a profiler.\n"},
	[VERDICT_NO_TENSOR] = {
		"no_tensor", LEVEL_ADVICE, LOSS_SM, "the tensor cores are idle",
		"Use mixed precision (BF16 autocast).",
		"The SMs are active 30 to 70 % of the time, and the tensor cores less than 1 %.",
		"- Train and serve in BF16 or FP16, or allow TF32 for matrix products.\n"
		"- Work without matrix products does not use tensor cores: nothing to do then.\n"},
	[VERDICT_MISALIGNED] = {
		"misaligned", LEVEL_ADVICE, LOSS_SM, "the tensor cores are hardly used",
		"Pad dimensions to multiples of 8 (64 on newer GPUs).",
		"The SMs are active 30 to 70 % of the time, and the tensor cores less than 10 %.",
		"- Pad vocabulary, hidden size and batch to multiples of 8, or better 64.\n"
		"- Check that all large layers run in reduced precision.\n"},
	[VERDICT_HALF_FILLED] = {
		"half_filled", LEVEL_ADVICE, LOSS_SM, "the GPUs have room for more work",
		"Increase the batch size.",
		"The SMs are active 30 to 70 % of the time. Well-tuned training usually reaches 85 to 95 %.",
		"- Increase the batch size until the memory is used.\n"
		"- For inference that keeps a reserve for peaks, this verdict is expected.\n"},
	[VERDICT_SMALL_KERNELS] = {
		"small_kernels", LEVEL_ADVICE, LOSS_NONE, "the kernels are too small to fill the SMs",
		"Use larger batches, fuse kernels, or capture the work as a CUDA graph.",
		"The SMs are active, but hold less than 20 % of the warps that they could, and the tensor cores do not explain it.",
		"- Fuse operators (`torch.compile`), use `channels_last`, and increase the batch size.\n"},
	[VERDICT_MEMORY_BOUND] = {
		"memory_bound", LEVEL_ADVICE, LOSS_NONE, "the bandwidth of the GPU memory is the limit",
		"Quantize, or use fused attention.",
		"The memory runs at or near the bandwidth that it can reach, and the SMs wait for it. For the decode phase of language "
		"models, this verdict is expected.",
		"- Quantize weights and KV cache (INT8, FP8), use fused attention kernels, and serve larger batches.\n"
		"- Activation checkpointing saves memory but costs bandwidth, so it does not help.\n"},
	[VERDICT_COMPUTE_BOUND] = {
		"compute_bound", LEVEL_OK, LOSS_NONE, "the GPUs compute at their limit: the good case",
		"Scale out, or use faster GPUs, when this is too slow.",
		"The SMs are active at least 70 % of the time, and the memory keeps up.",
		"- `gpuscale trace` shows which kernels take the most time.\n"},
	[VERDICT_BALANCED] = {
		"balanced", LEVEL_OK, LOSS_NONE, "SMs and memory are both well used",
		"Nothing to do.",
		"The SMs are active at least 70 % of the time, and no single resource is the limit.",
		"- `gpuscale trace` shows which kernels take the most time.\n"},
	[VERDICT_UNMEASURED] = {
		"unmeasured", LEVEL_OK, LOSS_NONE, "the exporter has no SM activity for these GPUs",
		"Enable profiling metrics in the exporter.",
		"The GPUs are busy or report nothing, and DCGM_FI_PROF_SM_ACTIVE is missing: GPU_UTIL alone cannot distinguish work "
		"from waiting.",
		"- gpuscale-exporter: see \"Profiling\" in docs/exporter.md. dcgm-exporter: add DCGM_FI_PROF_SM_ACTIVE to its counters.\n"},
};
// clang-format on
_Static_assert(sizeof verdict_infos / sizeof *verdict_infos == VERDICT__COUNT, "one row per verdict");

// ---- conditions ----

// Thresholds: the decision tree of docs/diagnosis.md. A term about a missing measure is false, so that a verdict
// never rests on absent data; the order of the rows makes the table total.

#define TERMS(...) {__VA_ARGS__}, sizeof((struct verdict_term[]){__VA_ARGS__}) / sizeof(struct verdict_term)

// clang-format off
const struct verdict_row verdict_rows[] = {
	{VERDICT_HARDWARE,      TERMS({MEASURE_XID, OP_ABOVE, 0})},
	{VERDICT_HARDWARE,      TERMS({MEASURE_ECC, OP_ABOVE, 0})},
	{VERDICT_HARDWARE,      TERMS({MEASURE_REMAP, OP_ABOVE, 0})},
	{VERDICT_FABRIC,        TERMS({MEASURE_NVLINK, OP_ABOVE, 0})},
	{VERDICT_FABRIC,        TERMS({MEASURE_PCIE_REPLAY, OP_ABOVE, 1})},
	{VERDICT_FABRIC,        TERMS({MEASURE_NIC_ERRORS, OP_ABOVE, 0})},
	{VERDICT_FABRIC,        TERMS({MEASURE_NIC_DROPS, OP_ABOVE, 1})},
	{VERDICT_THROTTLED,     TERMS({MEASURE_THROTTLED, OP_ABOVE, 0.05})},
	{VERDICT_THROTTLED,     TERMS({MEASURE_THERMAL, OP_ABOVE, 0.05})},
	{VERDICT_OOM,           TERMS({MEASURE_OOM, OP_ABOVE, 0})},
	{VERDICT_LOADING,       TERMS({MEASURE_LOADING, OP_ABOVE, 0})},
	{VERDICT_IDLE,          TERMS({MEASURE_BUSY_LONG, OP_BELOW, 0.05})},
	{VERDICT_WAITING,       TERMS({MEASURE_BUSY, OP_BELOW, 0.05})},
	{VERDICT_HUNG,          TERMS({MEASURE_BUSY, OP_ABOVE, 0.95}, {MEASURE_DRAM, OP_BELOW, 0.02}, {MEASURE_TENSOR, OP_BELOW, 0.01})},
	{VERDICT_SLOW_LINK,     TERMS({MEASURE_LINK, OP_BELOW, 0.99})},
	{VERDICT_SLOW_CLOCK,    TERMS({MEASURE_CLOCK, OP_BELOW, 0.9})},
	{VERDICT_COMMUNICATION, TERMS({MEASURE_COLLECTIVE, OP_ABOVE, 0.2})},
	{VERDICT_LOADER,        TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_PCIE_RX, OP_ABOVE, 2e9})},
	{VERDICT_LOADER,        TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_PCIE_SHARE, OP_ABOVE, 0.5})},
	{VERDICT_STORAGE,       TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_DISK_WAIT, OP_ABOVE, 0.2})},
	{VERDICT_STORAGE,       TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_NODE_IOWAIT, OP_ABOVE, 0.2})},
	{VERDICT_STORAGE,       TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_NODE_NETWORK, OP_ABOVE, 0.8})},
	{VERDICT_PREPROCESSING, TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_CPU, OP_ABOVE, 0.8})},
	{VERDICT_PREPROCESSING, TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_CPU_THROTTLED, OP_ABOVE, 0.25})},
	{VERDICT_LOADER,        TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_DATA_WAIT, OP_ABOVE, 0.2})},
	{VERDICT_LOADER,        TERMS({MEASURE_SM, OP_BELOW, 0.7}, {MEASURE_SWING, OP_AT_LEAST, 0.5}, {MEASURE_PCIE_PEAK, OP_ABOVE, 0.5})},
	{VERDICT_SAWTOOTH,      TERMS({MEASURE_SM, OP_BELOW, 0.7}, {MEASURE_SWING, OP_AT_LEAST, 0.5})},
	{VERDICT_FAKE_LOAD,     TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_BUSY, OP_AT_LEAST, 0.5})},
	{VERDICT_UNDERFILLED,   TERMS({MEASURE_SM, OP_BELOW, 0.3})},
	{VERDICT_NO_TENSOR,     TERMS({MEASURE_SM, OP_BELOW, 0.7}, {MEASURE_TENSOR, OP_BELOW, 0.01})},
	{VERDICT_MISALIGNED,    TERMS({MEASURE_SM, OP_BELOW, 0.7}, {MEASURE_TENSOR, OP_BELOW, 0.1})},
	{VERDICT_HALF_FILLED,   TERMS({MEASURE_SM, OP_BELOW, 0.7})},
	// Well tuned matrix kernels run at a low occupancy, so a busy tensor pipe clears the suspicion.
	{VERDICT_SMALL_KERNELS, TERMS({MEASURE_SM, OP_AT_LEAST, 0.7}, {MEASURE_OCCUPANCY, OP_BELOW, 0.2}, {MEASURE_TENSOR, OP_NOT_AT_LEAST, 0.5})},
	// 0.8 is about what memory can reach; without tensor work, three quarters of that are the limit.
	{VERDICT_MEMORY_BOUND,  TERMS({MEASURE_SM, OP_AT_LEAST, 0.7}, {MEASURE_DRAM, OP_AT_LEAST, 0.8})},
	{VERDICT_MEMORY_BOUND,  TERMS({MEASURE_SM, OP_AT_LEAST, 0.7}, {MEASURE_DRAM, OP_AT_LEAST, 0.6}, {MEASURE_TENSOR, OP_BELOW, 0.3})},
	{VERDICT_COMPUTE_BOUND, TERMS({MEASURE_SM, OP_AT_LEAST, 0.7}, {MEASURE_DRAM, OP_BELOW, 0.5})},
	{VERDICT_BALANCED,      TERMS({MEASURE_SM, OP_AT_LEAST, 0.7})},
	// Without SM activity. An idle H100 draws 18 % of its limit, and one that only copies draws 55 %.
	{VERDICT_SAWTOOTH,      TERMS({MEASURE_BUSY, OP_BELOW, 0.9}, {MEASURE_SWING, OP_AT_LEAST, 0.5})},
	{VERDICT_FAKE_LOAD,     TERMS({MEASURE_BUSY, OP_AT_LEAST, 0.9}, {MEASURE_POWER, OP_BELOW, 0.35})},
	{VERDICT_UNMEASURED,    .n_terms = 0},
};
const size_t verdict_n_rows = sizeof verdict_rows / sizeof *verdict_rows;
const char *const verdict_op_signs[] = {[OP_END] = "", [OP_ABOVE] = ">", [OP_BELOW] = "<", [OP_AT_LEAST] = ">=", [OP_NOT_AT_LEAST] = ">="};
const char *const verdict_level_names[] = {"ok", "advice", "fault"};
// clang-format on
_Static_assert(sizeof verdict_level_names / sizeof *verdict_level_names == LEVEL__COUNT, "one name per level");

// A comparison with NaN is false.
static bool term_holds(const struct verdict_term *t, double value)
{
	switch (t->op) {
	case OP_ABOVE:
		return value > t->limit;
	case OP_BELOW:
		return value < t->limit;
	case OP_AT_LEAST:
		return value >= t->limit;
	case OP_NOT_AT_LEAST:
		return !(value >= t->limit);
	case OP_END:
		break;
	}
	return false;
}

const struct verdict_row *verdict_decide(const double *values)
{
	for (const struct verdict_row *row = verdict_rows; row < verdict_rows + verdict_n_rows; row++) {
		size_t k = 0;
		while (k < row->n_terms && term_holds(&row->terms[k], values[row->terms[k].measure]))
			k++;
		if (k == row->n_terms)
			return row;
	}
	assert(false && "the last row has no terms");
	return NULL;
}

double verdict_lost_ratio(enum verdict v, const double *values)
{
	enum verdict_loss loss = verdict_infos[v].loss;
	if (loss == LOSS_NONE || loss == LOSS_ALL)
		return loss == LOSS_ALL;
	double lost = 1 - values[loss == LOSS_SM ? MEASURE_SM : MEASURE_CLOCK];
	return isnan(lost) ? NAN : fmin(fmax(lost, 0), 1);
}

size_t verdict_evidence(const struct verdict_row *row, const double *values, enum verdict_measure *out)
{
	static const enum verdict_measure common[] = {MEASURE_BUSY, MEASURE_SM, MEASURE_TENSOR, MEASURE_DRAM};
	size_t n = 0, n_wanted = row->n_terms + sizeof common / sizeof common[0];
	for (size_t i = 0; i < n_wanted && n < VERDICT_EVIDENCE_MAX; i++) {
		enum verdict_measure m = i < row->n_terms ? row->terms[i].measure : common[i - row->n_terms];
		size_t k = 0;
		while (k < n && out[k] != m)
			k++;
		if (k == n && !isnan(values[m]))
			out[n++] = m;
	}
	return n;
}
