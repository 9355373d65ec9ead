// SPDX-License-Identifier: Apache-2.0
// Runs independent tasks on several threads.
#ifndef GPUSCALE_REPLAY_PARALLEL_H
#define GPUSCALE_REPLAY_PARALLEL_H

#include <stddef.h>

#define PARALLEL_THREADS_MAX 256

struct parallel {
	// Runs task `i`. Tasks run in any order, several at a time: each writes only what belongs to it.
	void (*run)(void *context, size_t i);
	// Called by the calling thread after each of its tasks, with the number of tasks that were started; may be
	// NULL.
	void (*on_progress)(void *context, size_t started);
	void *context;
};

// Runs tasks 0 to n - 1 on up to `threads` threads, the calling one included, and returns when all are done. A thread
// that cannot be started leaves its tasks to the others.
void parallel_run(const struct parallel *p, size_t n, unsigned threads);

// Returns how many cores this process may use, 1 to PARALLEL_THREADS_MAX.
unsigned parallel_cores(void);

#endif
