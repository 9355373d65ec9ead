// SPDX-License-Identifier: Apache-2.0
// What is scaled, as a fluid queue: work arrives, ready replicas serve it first come first served, each at one
// replica-second a second; an ordered replica costs from the order on and serves after the start-up time.
#ifndef GPUSCALE_TEST_SIM_WORLD_H
#define GPUSCALE_TEST_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/sim/trace.h"

#define WORLD_LATE_S       10.0 // a request is late when it waits longer than this
#define WORLD_STARTING_MAX 4096 // replicas that start at the same time

struct world {
	const struct trace *trace;
	double startup_s;
	double now_s;
	int32_t ready;
	double starting[WORLD_STARTING_MAX]; // when each will be ready, oldest order first
	size_t n_starting;
	double arrived, served; // replica-seconds since the start
	double requests, late;  // weights, of the requests that began to be served
	double replica_s;       // paid
	int32_t direction, reversals, scales;
	size_t bin, oldest; // next bin to arrive; oldest bin not wholly served
	double *arrived_by; // arrived after each bin; heap
};

// What a controller sees after a step: means over the step, state at its end.
struct world_view {
	double demand;      // arriving work, in replicas' worth
	double backlog;     // queued work, in replica-seconds
	double utilization; // 0 - 1 of the ready replicas
};

// 0, or -1 when memory ends. The trace must outlive it. Starts with `replicas` ready ones.
int world_init(struct world *w, const struct trace *trace, double startup_s, int32_t replicas);
void world_done(struct world *w);
// Goes on by step_s, which must be a multiple of the trace's bins, or to the end of the trace. Returns false at the
// end.
bool world_step(struct world *w, double step_s, struct world_view *ret_view);
// Orders or removes replicas: those that start go first, the newest order before older ones.
void world_scale(struct world *w, int32_t replicas);
int32_t world_replicas(const struct world *w); // ready and starting
// Those who still wait count as served at the present rate.
void world_finish(struct world *w);

#endif
