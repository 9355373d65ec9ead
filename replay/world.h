// SPDX-License-Identifier: Apache-2.0
// The simulated workload: a fluid queue that ready replicas serve, each at one replica-second a second, or at
// capacity_ratio times that where the figure in the queries is wrong. Work, demand and backlog are in the units of the
// queries, for every candidate. A replica costs
// from its order on and serves after its start-up time; while the cluster is full, an order is pending and costs
// nothing. Metrics react: utilization, demand and backlog are what a source would report.
#ifndef GPUSCALE_REPLAY_WORLD_H
#define GPUSCALE_REPLAY_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "replay/engine.h"

#define WORLD_STARTUPS_MAX 256 // start-up times that are drawn from
#define WORLD_REPLICAS_MAX 100000
#define WORLD_HISTORY      128 // steps that the metrics can look back

struct world_config {
	int64_t step_ms;
	double startups_s[WORLD_STARTUPS_MAX]; // one: constant; more: each start draws one of them
	size_t n_startups;
	uint64_t seed;              // seed of the draws
	int32_t capacity;           // replicas that the cluster has room for; 0: no limit
	double capacity_ratio;      // work that a replica serves in a second, in replica-seconds of the queries; 0: 1
	struct engine_setup engine; // engines that take the place of the fluid queue; none without a model
};

struct world_order {
	int64_t ready_ms;
	int32_t n;
};

struct world {
	const struct world_config *config; // not owned
	int64_t now_ms;                    // since the start
	int32_t ready, starting, unscheduled;
	double backlog;        // queued work in replica-seconds
	struct engine *engine; // NULL: a fluid queue; heap
	struct score *score;   // score of the engine's requests; not owned
	double engine_wait_s;
	struct world_order *orders; // orders of the starting replicas, oldest first; heap
	size_t n_orders, cap_orders;
	int64_t next_ready_ms; // time of the first start that completes
	uint64_t random;
	double utilization[WORLD_HISTORY], demand[WORLD_HISTORY]; // rings
	uint64_t n_history;
};

static inline double world_capacity_ratio(const struct world_config *c)
{
	return c->capacity_ratio > 0 ? c->capacity_ratio : 1;
}

// Starts with `replicas` ready ones. `config` must outlive the world.
void world_init(struct world *w, const struct world_config *config, int32_t replicas);
void world_done(struct world *w);

// One step in which `work` replica-seconds arrive; returns how many were served. With engines, it returns 0, adds the
// requests to w->score, and returns -1 when memory is exhausted.
double world_step(struct world *w, double work);
// One step without data: time passes and replicas start, but nothing arrives, and nothing is served; engines go on with
// the requests that they have. Returns 0, or -1 when memory is exhausted.
int world_skip(struct world *w);

// Ordered replicas, in any state.
int32_t world_replicas(const struct world *w);
// Replicas that cost: ready, starting, and finishing their requests.
int32_t world_paid(const struct world *w);
// Orders or removes replicas, at most WORLD_REPLICAS_MAX; the newest order goes first, ready replicas last. Returns -1
// when memory is exhausted.
int world_scale(struct world *w, int32_t replicas);

// Means over the last window_s that ended lag_s ago; shorter at the start. window_s + lag_s is at most WORLD_HISTORY
// steps.
double world_utilization(const struct world *w, int window_s, int lag_s); // 0 .. 1 of the ready replicas
double world_demand(const struct world *w, int window_s);                 // replicas' worth
// Returns how long work that arrives now waits, in seconds; infinite without ready replicas. With engines, how long the
// oldest request without a first token has waited.
double world_wait_s(const struct world *w);

#endif
