// SPDX-License-Identifier: Apache-2.0
// Writes the status of GPUPool objects, only when something changed and at most every POOL_STATUS_MS, and Events on
// transitions. The record of the spending is written every POOL_SPENDING_MS, and with everything else.
#ifndef GPUSCALE_CONTROLLER_POOL_POOL_STATUS_H
#define GPUSCALE_CONTROLLER_POOL_POOL_STATUS_H

#include <stdint.h>

struct event_recorder;
struct log;
struct pool;
struct pools;
struct state_dir;
struct status_writer;

#define POOL_STATUS_CHECK_MS  5000   // interval of the checks
#define POOL_STATUS_MS        15000  // between two writes of one status
#define POOL_SPENDING_MS      300000 // between two writes of the record of a pool's spending
#define POOL_STATUS_BYTES_MAX (1024 * 1024)

struct pool_status_env { // owns nothing
	struct status_writer *writer;
	struct event_recorder *events;
	struct state_dir *dir; // for the spending of pools from files; NULL: it is not recorded
	struct log *log;       // errors of `dir`
	// The API server answered the write of a pool's status with 404.
	void (*on_missing)(void *arg, const char *name);
	void *arg;
};

// Counts what the pools spend, and writes what has changed. Call it every POOL_STATUS_CHECK_MS, in the one process that
// shares the pools. Of pools from files, only the record of their spending is written. env must outlive the pools. If
// its writer is NULL, nothing is written.
void pool_status_write_all(struct pools *p, const struct pool_status_env *env, int64_t now_ms, int64_t now_mono_ms);

#endif
