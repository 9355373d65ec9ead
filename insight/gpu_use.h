// SPDX-License-Identifier: Apache-2.0
// How much of each model of GPU each namespace, pod or label used over a period, gathered from responses of Prometheus.
#ifndef GPUSCALE_INSIGHT_GPU_USE_H
#define GPUSCALE_INSIGHT_GPU_USE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct err;

#define GPU_USE_ROWS_MAX  1000000
#define GPU_USE_BYTES_MAX ((size_t)512 * 1024 * 1024)

// The sum of a measure over the minutes of a period, in thousandths.
enum gpu_measure {
	GPU_ALLOCATED, // GPU-seconds: the share of the GPU that counts for the pod
	GPU_IDLE,      // GPU-seconds in which nothing ran
	GPU_FAKE,      // GPU-seconds that were busy by GPU_UTIL and idle by SM_ACTIVE
	GPU_MEASURED,  // GPU-seconds with a utilization
	GPU_ENERGY,    // watt-seconds
	GPU_MEASURE__COUNT
};

struct gpu_use {
	const char *model;
	const char *namespace_name; // "": the GPUs without a pod
	const char *part;           // part of the namespace: a pod, or the value of a label; "": the whole, or the rest
	int64_t milli[GPU_MEASURE__COUNT];
};

struct gpu_use_set {
	struct gpu_use *rows; // in the order in which they were added
	size_t n, cap;
	uint32_t *slots; // hash table: index of the row + 1; 0 = free
	size_t n_slots;
	struct arena names;
};

void gpu_use_init(struct gpu_use_set *s);
void gpu_use_done(struct gpu_use_set *s);
// Adds `value` to a measure of a row, which is created with copies of the names. -1 and *e: ERR_LIMIT for more than
// GPU_USE_ROWS_MAX rows, ERR_PROTOCOL for a value that is not finite, negative or absurd, ERR_INTERNAL.
int gpu_use_add(struct gpu_use_set *s, const char *model, const char *namespace_name, const char *part,
                enum gpu_measure measure, double value, struct err *e);
// Makes the measures consistent, once all are added: idle and fake are parts of measured, which is a part of allocated.
// Sampled at slightly different series, they may differ by a rounding.
void gpu_use_close(struct gpu_use_set *s);

#endif
