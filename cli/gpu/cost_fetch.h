// SPDX-License-Identifier: Apache-2.0
// Asks a Prometheus how much of each GPU was used over a period, in parts of some hours each.
#ifndef GPUSCALE_CLI_GPU_COST_FETCH_H
#define GPUSCALE_CLI_GPU_COST_FETCH_H

#include <stddef.h>
#include <stdint.h>

#include "insight/gpu_cost.h"
#include "insight/gpu_use_query.h"

struct err;
struct prometheus_session;

#define COST_MODELS_MAX 256

struct cost_model_count {
	const char *model;
	int64_t gpus; // the most that reported within one part of the period
};

struct cost_use {
	struct gpu_use_set use;
	struct cost_model_count models[COST_MODELS_MAX];
	size_t n_models;
};

struct cost_period {
	int64_t start_s, end_s; // multiples of GPU_USE_STEP_S
};

// Fills *ret_use from the source of `c` that is called default, or is the only one; waits for the answers. Returns -1
// and *e when a question fails or its answer is incomplete: a sum without it would be wrong. The caller calls
// gpu_use_done(&ret_use->use) in either case.
int cost_fetch(struct prometheus_session *session, const struct cost_period *period, const struct gpu_use_parts *parts,
               struct cost_use *ret_use, struct err *e);

#endif
