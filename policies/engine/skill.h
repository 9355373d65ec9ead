// SPDX-License-Identifier: Apache-2.0
// The skill of a forecast: how far its past forecasts were from the load that came, compared with two forecasts that
// need no model: the last load (what the policy uses without a forecast) and the load one season earlier. Part of the
// flat state.
//
// The mean absolute errors fade with a time constant of one day. skill = 1 - error of the model / error of the better
// of the two naive forecasts: the scaled error of Hyndman and Koehler (Another look at measures of forecast accuracy,
// 2006), with naive forecasts over the same horizon. A hundredth of the mean load makes no difference: a smaller error
// of the last load is treated as that much, and the season before must be better by more than that to be treated as
// better. Without both, a load that repeats exactly would have no skill.
#ifndef GPUSCALE_POLICIES_ENGINE_SKILL_H
#define GPUSCALE_POLICIES_ENGINE_SKILL_H

#include <stdbool.h>
#include <stdint.h>

#define SKILL_PENDING_MAX 16 // forecasts whose time has not come yet, spread over the horizon
#define SKILL_DAY_MS      INT64_C(86400000)

// Each of the three forecasts of the load at due_ms.
struct skill_pending {
	int64_t due_ms;
	double model, season, last;
};

// Part of the flat state; has no padding.
struct skill {
	int64_t newest_ms; // time of the newest load; TIME_NONE
	double newest;
	int64_t compared_until_ms; // due time of the last forecast compared; TIME_NONE
	int64_t compared_ms;       // time covered by comparisons; does not fade
	double weight;             // fading sums over time: of the time itself, of the load, of the absolute errors
	double load, model, season, last;
	uint32_t start, len; // start and length of the ring `pending`
	uint32_t on, unused; // on: the model was better when last judged
	struct skill_pending pending[SKILL_PENDING_MAX];
};

// Starts the record again: no comparison, off.
void skill_reset(struct skill *s);
// Drops the forecasts whose time has not come, and keeps the record; for a clock that was set.
void skill_drop_pending(struct skill *s);

// Compares the forecasts due since the last call with the load at time_ms, which is not smaller than at the last call;
// between two loads the load changes evenly. Forecasts that became due in a gap of more than gap_ms are dropped.
void skill_observe(struct skill *s, int64_t gap_ms, int64_t time_ms, double load);

// Remembers the forecasts of the model, of the season before and of the last load for due_ms, to be compared when that
// time comes; skips some of them when the horizon due_ms - now_ms has more ticks than the ring has room for.
void skill_remember(struct skill *s, int64_t now_ms, const struct skill_pending *forecasts);

// Returns whether the model is to be used: never before trial_ms were compared; then it goes on with a skill of 0.05
// and off at 0 or below.
bool skill_evaluate(struct skill *s, int64_t trial_ms);

// Sets the mean absolute errors of the model and of the better naive forecast; 0 without a comparison.
void skill_errors(const struct skill *s, double *ret_model, double *ret_naive);

#endif
