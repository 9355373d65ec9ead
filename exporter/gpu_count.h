// SPDX-License-Identifier: Apache-2.0
// The highest number of GPUs that this node ever had, in a file, so that a GPU that disappears between two starts is
// missing. Call every function from one thread.
#ifndef GPUSCALE_EXPORTER_GPU_COUNT_H
#define GPUSCALE_EXPORTER_GPU_COUNT_H

#include <stdbool.h>
#include <stddef.h>

struct log;

struct gpu_count {
	const char *path; // NULL: no file, and no GPU is missing
	bool read_only;
	struct log *log; // may be NULL
	size_t most;
};

// Reads the number from the file `path`, which is not owned and need not exist yet. With `read_only`, the file is never
// written. Logs a file that is not valid, and then starts anew.
void gpu_count_init(struct gpu_count *c, const char *path, bool read_only, struct log *log);
// Returns how many GPUs are missing when `n` are found, those that do not respond included. Replaces the file when `n`
// is a new maximum; logs when this fails.
size_t gpu_count_missing(struct gpu_count *c, size_t n);

#endif
