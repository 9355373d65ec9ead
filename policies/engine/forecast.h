// SPDX-License-Identifier: Apache-2.0
// Forecast of a load: a linear trend, or the additive method of Holt and Winters with a season. Part of the flat state,
// with one number per slot of time; samples are averaged into slots. Seasons are aligned to the epoch.
//
// Linear: least squares over the means of the last full slots of `window`.
// HoltWinters, with y the mean of a slot, m slots a season (Hyndman, Athanasopoulos: Forecasting, principles and
// practice, 3rd edition, section 8.3; Winters 1960):
//   level  l = alpha (y - s[-m]) + (1 - alpha) (l[-1] + b[-1])
//   trend  b = beta (l - l[-1]) + (1 - beta) b[-1]
//   season s = gamma (y - l[-1] - b[-1]) + (1 - gamma) s[-m]
//   h slots ahead: l + h b + s of that slot
// Initialized after two whole seasons, from their means (level, trend) and their detrended average (season). A model
// that diverges starts anew.
#ifndef GPUSCALE_POLICIES_ENGINE_FORECAST_H
#define GPUSCALE_POLICIES_ENGINE_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/engine/plausible.h"

struct policy_forecast;

#define FORECAST_SEASON_SLOTS_MAX 288 // a day in slots of five minutes
#define FORECAST_WINDOW_SLOTS_MAX 64
#define FORECAST_SLOTS_MIN        4
#define FORECAST_DOUBLES_MAX      (2 * FORECAST_SEASON_SLOTS_MAX + 1)

// Part of the flat state; has no padding.
struct forecast {
	uint64_t slots_offset; // from this struct to its doubles
	uint32_t n_slots;      // a season or window; 0: the policy has no forecast
	uint32_t learnt;       // HoltWinters: two seasons are complete
	int64_t index, first;  // the slot being filled, the first slot with data; TIME_NONE
	int64_t n_samples;     // in the slot being filled
	double sum, last;      // sum of these samples; mean of the previous slot
	double level, trend;
	double variance; // variance of the errors one slot ahead
	int64_t n_errors;
	double totals[2], squares; // first two seasons: sums of the means, squares of their differences
	struct doubt doubt;        // about the load
};

// Returns how many slots this configuration needs at this interval (ms).
uint32_t forecast_slots_needed(const struct policy_forecast *config, int64_t interval_ms);
// Returns how many doubles it needs at `slots`: HoltWinters also keeps the means of the last season.
uint32_t forecast_doubles_needed(const struct policy_forecast *config, int64_t interval_ms);
// Initializes the forecast with n_slots slots; `slots` has room for forecast_doubles_needed() doubles, which the
// forecast sets and uses from now on.
void forecast_init(struct forecast *f, double *slots, uint32_t n_slots);
// Returns these doubles.
static inline double *forecast_slots(const struct forecast *f)
{
	return (double *)((uintptr_t)f + f->slots_offset);
}
// Adds a finite load at time_ms, which is not smaller than at the last call. Short gaps are bridged; a long gap resets
// the trend (HoltWinters) or leaves slots empty (Linear); a gap of two seasons restarts the forecast.
void forecast_observe(struct forecast *f, const struct policy_forecast *config, int64_t time_ms, double load);
// In place of an observation that must not be learnt from: repeats what was observed last. A gap would restart a model
// whose window or season is short.
void forecast_repeat(struct forecast *f, const struct policy_forecast *config, int64_t time_ms);
// Computes the load at time_ms, later than the last of the observations, which come every interval_ms, and the standard
// deviation of its error; both finite. Returns false while the history is too short, with the remaining time in
// *ret_left_ms.
bool forecast_at(const struct forecast *f, const struct policy_forecast *config, int64_t interval_ms, int64_t time_ms,
                 double *ret_load, double *ret_deviation, int64_t *ret_left_ms);
// Returns the load one season before time_ms, or, where that has not come yet either, whole seasons before it: the
// seasonal naive forecast. Only for HoltWinters, while forecast_at() returns true for the same time_ms.
double forecast_season_ago(const struct forecast *f, const struct policy_forecast *config, int64_t interval_ms,
                           int64_t time_ms);
// Returns how much time of forecasts is compared with the loads that came before the forecast is used, in ms: a quarter
// of the season or the whole window, of at most a day.
int64_t forecast_trial_ms(const struct policy_forecast *config);
// Returns how much history the model needs before its first forecast, in ms: two seasons or the window.
int64_t forecast_learning_ms(const struct policy_forecast *config);
// Moves the learned values by step_ms, by which the clock was set, rounded to a slot. Returns false and changes nothing
// when step_ms is less than a slot.
bool forecast_move(struct forecast *f, const struct policy_forecast *config, int64_t step_ms);
// Returns the length of a slot in ms, rounded down.
int64_t forecast_slot_ms(const struct forecast *f, const struct policy_forecast *config);
// Returns whether what was learnt under one configuration is valid under the other.
bool forecast_is_same(const struct policy_forecast *a, const struct policy_forecast *b);

// ---- the skill of the model ----

// The skill of a forecast: how far its past forecasts were from the load that came, compared with two forecasts that
// need no model: the last load (what the policy uses without a forecast) and the load one season earlier. Part of the
// flat state.
//
// The mean absolute errors fade with a time constant of one day. skill = 1 - error of the model / error of the better
// of the two naive forecasts: the scaled error of Hyndman and Koehler (Another look at measures of forecast accuracy,
// 2006), with naive forecasts over the same horizon. A hundredth of the mean load makes no difference: a smaller error
// of the last load is treated as that much, and the season before must be better by more than that to be treated as
// better. Without both, a load that repeats exactly would have no skill.

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

// Returns the record of a forecast, which stands in front of its doubles.
static inline struct skill *forecast_skill(const struct forecast *f)
{
	return (struct skill *)((uintptr_t)forecast_slots(f) - sizeof(struct skill));
}
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
