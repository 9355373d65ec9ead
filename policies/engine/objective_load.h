// SPDX-License-Identifier: Apache-2.0
// What the objective stage learns about the load: the requirement, two forecasts, means and deviations, recent maxima
// and two seasons. It depends on the demand alone, never on our decisions. Part of the flat state; has no padding; all
// zero at the start.
//
// The requirement of a tick is the constant capacity that would just have kept the wait: the largest, over the last L
// seconds, of (work arrived in L) / (L + wait). Sizing for it holds the seconds of the objective; a quantile of plain
// demand does not.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_LOAD_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_LOAD_H

#include <stdint.h>

// ---- a maximum over ticks ----

// The largest value of the last n ticks, in nine numbers instead of n: the ticks are grouped in blocks of n / 8, and a
// block is forgotten as a whole. The value covers the last n ticks (rounded down to whole blocks, at least nine ticks)
// and up to a block more. Part of the flat state; has no padding; all zero at the start.
#define BLOCK_MAX_BLOCKS 9

struct block_max {
	float blocks[BLOCK_MAX_BLOCKS];
	uint16_t filled; // ticks in the current block
	uint16_t at;     // the current block
};

// Adds the value of a tick, which is not negative, and returns the largest one of the last n ticks. n may change.
float block_max_add(struct block_max *b, int n, float value);

// ---- the load ----

#define OBJECTIVE_STEP_S     15 // seconds that one step stands for
#define OBJECTIVE_RECENT     16 // steps that the requirement looks back
#define OBJECTIVE_HOUR_SLOTS 60 // one per minute
#define OBJECTIVE_DAY_SLOTS  96 // one per quarter of an hour

enum objective_forecast { OBJECTIVE_BRISK, OBJECTIVE_CALM, OBJECTIVE_FORECAST__COUNT };
enum objective_memory { OBJECTIVE_HALF_HOUR, OBJECTIVE_DAY, OBJECTIVE_MEMORY__COUNT };
enum objective_season { OBJECTIVE_HOURLY, OBJECTIVE_DAILY, OBJECTIVE_SEASON__COUNT };
// The maxima that are kept: of both forecasts over some minutes, of the requirement over 45 minutes and 3 hours.
enum objective_peak {
	OBJECTIVE_PEAK_BRISK,
	OBJECTIVE_PEAK_CALM,
	OBJECTIVE_PEAK_SHORT,
	OBJECTIVE_PEAK_LONG,
	OBJECTIVE_PEAK__COUNT
};

struct objective_load {
	float recent[OBJECTIVE_RECENT]; // demand, newest first
	float level[OBJECTIVE_FORECAST__COUNT], trend[OBJECTIVE_FORECAST__COUNT];
	float mean[OBJECTIVE_MEMORY__COUNT], variance[OBJECTIVE_MEMORY__COUNT];
	float hour[OBJECTIVE_HOUR_SLOTS], day[OBJECTIVE_DAY_SLOTS]; // largest requirement of a slot's last visits
	float hour_now, day_now;                                    // and of the current visit
	int32_t hour_at, day_at;
	struct block_max peaks[OBJECTIVE_PEAK__COUNT];
};

// What one step knows, in replicas.
struct objective_view {
	float demand, requirement;
	float present;  // mean demand of the last minute, or of a quarter of a long wait
	float patience; // 0: queued work must be served at once .. 1: it has a deadline, objective_patience()
	float forecast[OBJECTIVE_FORECAST__COUNT]; // of demand, for when a replica ordered now is ready
	float mean[OBJECTIVE_MEMORY__COUNT], deviation[OBJECTIVE_MEMORY__COUNT];
	float peak[OBJECTIVE_PEAK__COUNT];
	float season[OBJECTIVE_SEASON__COUNT]; // largest requirement of the next minutes on earlier visits
	float widen; // margins are wider while there are few samples: 5 at the first step, then 3 ..
};

// Returns how much the wait makes queued work a matter of a deadline: 0 up to a minute, 1 from ten minutes on.
float objective_patience(float wait_s);

// Adds the demand (finite, in replicas, not negative) of step number `steps` (from 0 on) at time_s (seconds since the
// epoch; it may stand still or go back), and fills *ret_view. The work of a step arrives within 1 / burst of the step
// and may wait wait_s; a replica needs startup_s from its order until it is ready.
void objective_load_step(struct objective_load *l, int32_t steps, float demand, int64_t time_s, float burst,
                         float wait_s, float startup_s, struct objective_view *ret_view);
// Multiplies all that a view knows in replicas.
void objective_view_scale(struct objective_view *v, float factor);

// ---- bursts ----

// How fast the work of a step arrives: all of it within 1 / burst of the step. The samples do not show this, but the
// real queue does: it is longer than a queue with even arrivals would have been. Five virtual queues with the real
// replicas, each with another burst, are compared with the real one; the burst whose queue was as long on average is
// the learnt one.
//
// A long wait forgives what a step hides, so a constant burst serves as a margin there. The shorter the wait, the more
// that margin costs and the more the learnt burst counts. Part of the flat state; has no padding; all zero at the
// start.
#define OBJECTIVE_BURST_QUEUES 5
#define OBJECTIVE_BURST_MOST   3.0f
#define OBJECTIVE_BURST_WAIT_S 10.0f // a long wait: from here on, the burst is constant

struct objective_burst {
	float backlog[OBJECTIVE_BURST_QUEUES]; // replica-seconds
	float filled[OBJECTIVE_BURST_QUEUES];  // steps, each counted by the share of the wait that its queue filled
	float filled_really;                   // the same of the real queue
};

// Adds a step in which `ready` replicas served `demand` (replicas) and `backlog` (replica-seconds) remained.
void objective_burst_learn(struct objective_burst *b, float demand, float backlog, float ready, float wait_s);
// Returns the burst to simulate with, 1 .. 3.
float objective_burst(const struct objective_burst *b, float wait_s);

#endif
