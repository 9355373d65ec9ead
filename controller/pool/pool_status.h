// SPDX-License-Identifier: Apache-2.0
// Writes the status of GPUPool objects, only when something changed and at most every POOL_STATUS_MS, and Events on
// transitions.
#ifndef GPUSCALE_CONTROLLER_POOL_POOL_STATUS_H
#define GPUSCALE_CONTROLLER_POOL_POOL_STATUS_H

#include <stdint.h>

struct event_recorder;
struct pool;
struct pools;
struct status_writer;

#define POOL_STATUS_LOOK_MS   5000  // interval of the checks
#define POOL_STATUS_MS        15000 // between two writes of one status
#define POOL_STATUS_BYTES_MAX (1024 * 1024)

struct pool_status_env { // owns nothing
	struct status_writer *writer;
	struct event_recorder *events;
};

// Writes what has changed. Pools from files have no status. env must outlive the pools.
void pool_status_write_all(struct pools *p, const struct pool_status_env *env, int64_t now_ms, int64_t now_mono_ms);

#endif
