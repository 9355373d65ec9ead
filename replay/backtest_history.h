// SPDX-License-Identifier: Apache-2.0
// What the steps of a backtest add up to, in bounded memory: the course of demand and of the replicas of each row, the
// ten minutes in which the policy did worst, and what its replicas cost on variants.
#ifndef GPUSCALE_REPLAY_BACKTEST_HISTORY_H
#define GPUSCALE_REPLAY_BACKTEST_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/schema/binding.h"
#include "policies/spread/spread.h"
#include "replay/backtest.h"

#define TRACK_SPANS      1000
#define TRACK_POINTS_MAX (3 * TRACK_SPANS + 1)

enum track_state { TRACK_EMPTY, TRACK_GAP, TRACK_VALUE };

// A value over time in bounded memory: of each of TRACK_SPANS equal times the lowest, the highest and the last value.
struct track {
	int64_t from_ms, to_ms; // since the epoch
	float low[TRACK_SPANS], high[TRACK_SPANS], last[TRACK_SPANS];
	unsigned char state[TRACK_SPANS];
};

// The time from_ms <= t < to_ms.
void track_init(struct track *t, int64_t from_ms, int64_t to_ms);
// Adds the value at time_ms; NaN is a gap. Values are added in the order of time; those outside of the time are
// ignored.
void track_add(struct track *t, int64_t time_ms, double value);
// Writes the track as points of a step line: x in ms since the epoch, NaN in y where a gap starts, and the end of the
// time as last x. x and y have room for TRACK_POINTS_MAX. Returns how many points there are; 0 without any value.
size_t track_points(const struct track *t, double *x, double *y);

// ---- the history ----

#define HISTORY_WINDOW_MIN 10

enum history_worst {
	HISTORY_LATEST, // most late requests
	HISTORY_CHANGE, // largest change of replicas: nothing was late, or waits are unknown
};

// Sliding window over whole minutes of the policy's run.
struct history_window {
	int64_t minute; // the present one, since the start of the recording
	double late[HISTORY_WINDOW_MIN];
	int32_t low[HISTORY_WINDOW_MIN], high[HISTORY_WINDOW_MIN];
	int32_t replicas; // replicas in the last step
	double most_late;
	int32_t most_change;
	int64_t latest_minute, change_minute; // last minutes of the worst windows
	bool started;
};

struct backtest_history {
	int64_t from_ms, to_ms;
	struct track demand;
	struct track rows[BACKTEST_ROWS_MAX];
	bool has_row[BACKTEST_ROWS_MAX];
	struct history_window window;
};

// Prepares the history of a backtest over `recording`.
void backtest_history_init(struct backtest_history *h, const struct recording *recording);
// For struct backtest_config: on_step, with a history as step_context.
void backtest_history_add(void *history, size_t row, enum backtest_kind kind, const struct loop_step *step);
// Returns why the window [*ret_from_ms, *ret_to_ms) was chosen; it is the whole recording when that is shorter.
enum history_worst backtest_history_worst(const struct backtest_history *h, int64_t *ret_from_ms, int64_t *ret_to_ms);

// ---- the cost of variants ----

// What the replicas of a run, as units of capacity, cost when they are spread over variants, with the moves between
// them; and what they would cost an autoscaler for which all replicas are alike.

#define VARIANT_STARTS_MAX 64 // steps with starting replicas that are kept apart; then they are ready together

struct variant_starts {
	int64_t ready_ms[VARIANT_STARTS_MAX]; // oldest first
	int32_t replicas[VARIANT_STARTS_MAX];
	size_t n;
};

struct variant_cost {
	const struct scale_variants *variants; // not owned
	struct variant_now now[VARIANTS_MAX];
	struct variant_starts starts[VARIANTS_MAX];
	double replica_s[VARIANTS_MAX];
	double cost, alike_cost; // in the currency of the prices
	double switches;         // replicas that were started
	double short_s;          // time in which all variants together did not serve the units
};

// prices: of a replica and hour, one per variant. startup_ms: of a variant that does not state its own.
void variant_cost_init(struct variant_cost *c, const struct scale_variants *variants, const double *prices,
                       int64_t startup_ms);
// Adds a step, in the order of time; its replicas are units. An autoscaler for which all replicas are alike has as many
// as serve the units if each serves as much as the weakest one, the cheapest ones first: it is never later.
void variant_cost_add(struct variant_cost *c, const struct loop_step *step);

#endif
