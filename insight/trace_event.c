// SPDX-License-Identifier: Apache-2.0
#include "insight/trace_event.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

const char *trace_activity_name(enum trace_activity a)
{
	static const char *const names[] = {"collective", "data-loading", "copy", "launch", "unknown"};
	_Static_assert(sizeof names / sizeof *names == TRACE_ACTIVITY__COUNT, "one name per activity");
	return names[a];
}

// ---- places ----

// Categories of events on the GPU; Kineto wrote "Kernel" until 1.11 and writes "kernel" since.
static const char *const gpu_categories[] = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"};
// The profiler's own record, waits of a stream, and host annotations that are drawn again above their kernels.
static const char *const other_categories[] = {"trace",           "overhead", "cuda_sync", "gpu_user_annotation",
                                               "memory_profiler", "python_gc"};

static bool is_one_of(const char *text, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(text, list[i]) == 0)
			return true;
	return false;
}

enum trace_place trace_place_of(const struct trace_labels *l)
{
	if (is_one_of(l->cat, gpu_categories, sizeof gpu_categories / sizeof *gpu_categories))
		return TRACE_ON_GPU;
	if (is_one_of(l->cat, other_categories, sizeof other_categories / sizeof *other_categories))
		return TRACE_NOWHERE;
	// Converted Nsight reports have a row per stream of a device. NVTX ranges have rows of their own in the same
	// process.
	if (strncmp(l->pid, "Device ", 7) == 0 && strncmp(l->tid, "Stream ", 7) == 0)
		return TRACE_ON_GPU;
	return TRACE_ON_HOST;
}

// ---- activities ----

// A host event whose name contains `part`, or, with `cat`, whose category it is.
static const struct {
	enum trace_activity activity;
	const char *cat; // NULL: any
	const char *part;
} rules[] = {
        {TRACE_COLLECTIVE, NULL, "nccl"},
        {TRACE_COLLECTIVE, NULL, "rccl"},
        {TRACE_COLLECTIVE, NULL, "gloo:"},
        {TRACE_COLLECTIVE, NULL, "mpi:"},
        {TRACE_COLLECTIVE, NULL, "ucc:"},
        {TRACE_COLLECTIVE, NULL, "c10d::"},
        {TRACE_COLLECTIVE, NULL, "_c10d_functional::"},
        {TRACE_COLLECTIVE, NULL, "record_param_comms"},
        {TRACE_COLLECTIVE, NULL, "distributed_c10d.py"},
        {TRACE_COLLECTIVE, NULL, "gpuscale.collective"},
        {TRACE_DATA_LOADING, NULL, "dataloader"},
        {TRACE_DATA_LOADING, NULL, "torch/utils/data/"},
        {TRACE_DATA_LOADING, NULL, "IteratorGetNext"},
        {TRACE_DATA_LOADING, NULL, "gpuscale.data"},
        {TRACE_COPY, NULL, "Memcpy"},
        {TRACE_COPY, NULL, "Memset"},
        {TRACE_COPY, NULL, "aten::copy_"},
        {TRACE_COPY, NULL, "aten::to"},
        {TRACE_COPY, NULL, "aten::_to_copy"},
        {TRACE_COPY, NULL, "aten::item"},
        {TRACE_COPY, NULL, "aten::_local_scalar_dense"},
        {TRACE_COPY, NULL, "pin_memory"},
        {TRACE_LAUNCH, "cpu_op", ""},
        {TRACE_LAUNCH, "Operator", ""},
        {TRACE_LAUNCH, NULL, "LaunchKernel"},
        {TRACE_LAUNCH, NULL, "GraphLaunch"},
        {TRACE_LAUNCH, NULL, "LaunchCooperative"},
};

enum trace_activity trace_activity_of_host(const struct trace_labels *l)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		if (rules[i].cat ? strcasecmp(l->cat, rules[i].cat) == 0 : strcasestr(l->name, rules[i].part) != NULL)
			return rules[i].activity;
	}
	return TRACE_UNKNOWN;
}

bool trace_is_collective_kernel(const char *name)
{
	return strncmp(name, "nccl", 4) == 0 || strncmp(name, "rccl", 4) == 0 || strstr(name, "ncclKernel") != NULL ||
	       strstr(name, "ncclDevKernel") != NULL;
}
