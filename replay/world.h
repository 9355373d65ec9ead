// SPDX-License-Identifier: Apache-2.0
// The simulated workload: a fluid queue that ready replicas serve, each at one replica-second a second, or at
// capacity_ratio times that where the figure in the queries is wrong. Work, demand and backlog are in the units of the
// queries, for every candidate. A replica costs
// from its order on and serves after its start-up time; while the cluster is full, an order is pending and costs
// nothing. Metrics react: utilization, demand and backlog are what a source would report.
#ifndef GPUSCALE_REPLAY_WORLD_H
#define GPUSCALE_REPLAY_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/engine.h"

struct demand;
struct score;

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

// ---- the closed loop ----

// Closes the loop: recorded demand meets a simulated workload, which a candidate scales.

// Decides the replicas of the world, every interval_ms of simulated time.
struct candidate {
	// Returns the replicas wanted. `has_data` is false during a gap of the recording.
	int32_t (*decide)(void *self, const struct world *w, bool has_data);
	void *self;
	int64_t interval_ms;
};

// One step of a run, as it was when the step ended and before the candidate decided.
struct loop_step {
	int64_t time_ms; // start of the step, since the epoch
	int64_t span_ms;
	double demand;    // replicas' worth of work that arrived; NaN: no data
	int32_t replicas; // that cost
	int32_t ready;    // -1: unknown
	double wait_s;    // wait of work that arrives now; NaN: unknown
	double late;      // weight of the requests that are late
};

struct closed_loop {
	const struct demand *demand;
	const struct world_config *world; // its step_ms is that of the demand
	int32_t first;                    // replicas that are ready at the start
	int32_t max;                      // replicas, for the time at the maximum
	double late_s;                    // requests that wait longer are late
	// Called after every step, in the order of time; may be NULL.
	void (*on_step)(void *context, const struct loop_step *step);
	void *context;
};

// Reports step `i` of the demand to on_step: `wait_s` is what world_wait_s() returns, `ready` -1 when it is unknown,
// `late` the weight of late requests.
void closed_loop_report(const struct closed_loop *loop, size_t i, int32_t replicas, int32_t ready, double wait_s,
                        double late);

// Plays the whole demand. Gaps cost nothing and count nowhere. Returns 0, or -1 when memory is exhausted.
int closed_loop_run(const struct closed_loop *loop, const struct candidate *candidate, struct score *ret_score);

// The same in parts, each with a score of its own. The caller initializes the world and calls world_done().
struct closed_loop_play {
	const struct closed_loop *loop; // not owned
	struct world world;
	size_t next;       // step of the demand
	int32_t direction; // direction of the last scale: a change at the start of a part counts there
};
// Plays the steps before `end` that have not been played, and writes their score. Returns 0, or -1 when memory is
// exhausted.
int closed_loop_play(struct closed_loop_play *p, const struct candidate *candidate, size_t end,
                     struct score *ret_score);

#endif
