// SPDX-License-Identifier: Apache-2.0
// Time per kernel name, in bounded memory.
#ifndef GPUSCALE_INSIGHT_KERNEL_TABLE_H
#define GPUSCALE_INSIGHT_KERNEL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct err;

#define KERNEL_NAMES_MAX 16384 // further names are treated as KERNEL_TABLE_OTHER

#define KERNEL_TABLE_OTHER "(other)"

struct kernel_time {
	const char *name;
	int64_t total_ns, max_ns; // kernels that run at the same time on several streams all count
	size_t count;
};

struct kernel_table { // zeroed: empty
	struct kernel_time *rows;
	size_t n;
	uint32_t *slots; // index of the row + 1; 0: free
	struct arena names;
};

void kernel_table_done(struct kernel_table *t);
// Counts one run of the kernel. Copies the name. Returns 0, or -1 and *e (ERR_INTERNAL, out of memory).
int kernel_table_add(struct kernel_table *t, const char *name, int64_t ns, struct err *e);
// Orders the rows: most total time first. Nothing may be added afterwards.
void kernel_table_sort(struct kernel_table *t);

#endif
