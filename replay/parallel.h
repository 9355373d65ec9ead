// SPDX-License-Identifier: Apache-2.0
// Runs independent tasks on several threads.
#ifndef GPUSCALE_REPLAY_PARALLEL_H
#define GPUSCALE_REPLAY_PARALLEL_H

#include <stddef.h>

#define PARALLEL_THREADS_MAX 256

// Runs run(context, i) for the tasks 0 to n - 1 on up to `threads` threads, the calling one included, and returns when
// all are done. Tasks run in any order, several at a time: each writes only what belongs to it. A thread that cannot be
// started leaves its tasks to the others. The calling thread calls on_progress, which may be NULL, after each of its
// tasks, with the number of tasks that were started.
void parallel_run(size_t n, unsigned threads, void (*run)(void *context, size_t i),
                  void (*on_progress)(void *context, size_t started), void *context);

// Returns how many cores this process may use, 1 to PARALLEL_THREADS_MAX.
unsigned parallel_cores(void);

#endif
