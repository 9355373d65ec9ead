// SPDX-License-Identifier: Apache-2.0
// The meaning and the remedy of each verdict: the text of the command, the alert and docs/diagnosis.md.
#include "insight/verdict.h"

// clang-format off
static const struct verdict_info infos[] = {
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
_Static_assert(sizeof infos / sizeof infos[0] == VERDICT__COUNT, "one row per verdict");

const struct verdict_info *verdict_info(enum verdict v)
{
	return &infos[v];
}
