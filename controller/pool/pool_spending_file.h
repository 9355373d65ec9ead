// SPDX-License-Identifier: Apache-2.0
// The record of the spending of pools from files, in the state directory: the next process continues it.
#ifndef GPUSCALE_CONTROLLER_POOL_POOL_SPENDING_FILE_H
#define GPUSCALE_CONTROLLER_POOL_POOL_SPENDING_FILE_H

#include <stdint.h>

#include "controller/status/state_dir.h"

struct err;
struct log;
struct pool;
struct pools;

// Restores the record of each pool from a file that has a budget and no record yet. Logs a record that cannot be used,
// and without a directory (dir is NULL) every pool that will have none.
void pool_spending_files_read(struct pools *p, struct state_dir *dir, struct log *log);
// Queues the record of the pool for writing; slot and fn as in state_dir_put(). Returns 0, or -1 and *e.
int pool_spending_file_write(const struct pool *pool, struct state_dir *dir, struct state_slot *slot, int64_t now_ms,
                             state_written_fn *fn, void *arg, struct err *e);

#endif
