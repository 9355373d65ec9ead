// SPDX-License-Identifier: Apache-2.0
// Closes the loop: recorded demand meets a simulated workload, which a candidate scales.
#ifndef GPUSCALE_REPLAY_CLOSED_LOOP_H
#define GPUSCALE_REPLAY_CLOSED_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/world.h"

struct demand;
struct score;

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

// The same in parts, each with a score of its own.
struct closed_loop_play {
	const struct closed_loop *loop; // not owned
	struct world world;
	size_t next;       // step of the demand
	int32_t direction; // direction of the last scale: a change at the start of a part counts there
};
void closed_loop_play_init(struct closed_loop_play *p, const struct closed_loop *loop);
void closed_loop_play_done(struct closed_loop_play *p);
// Plays the steps before `end` that have not been played, and writes their score. Returns 0, or -1 when memory is
// exhausted.
int closed_loop_play(struct closed_loop_play *p, const struct candidate *candidate, size_t end,
                     struct score *ret_score);

#endif
