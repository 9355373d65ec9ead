// SPDX-License-Identifier: Apache-2.0
// Forecast of a load: a linear trend, or the additive method of Holt and Winters with a season. Lives inside the flat
// state with one number per slot of time; samples are averaged into slots. Season slots are aligned to the epoch.
//
// Linear: least squares over the means of the last full slots of `window`.
// HoltWinters, with y the mean of a slot, m slots a season (Hyndman, Athanasopoulos: Forecasting, principles and
// practice, 3rd edition, section 8.3; Winters 1960):
//   level  l = alpha (y - s[-m]) + (1 - alpha) (l[-1] + b[-1])
//   trend  b = beta (l - l[-1]) + (1 - beta) b[-1]
//   season s = gamma (y - l[-1] - b[-1]) + (1 - gamma) s[-m]
//   h slots ahead: l + h b + s of that slot
// Begun after two whole seasons, from their means (level, trend) and their detrended average (season).
#ifndef GPUSCALE_POLICIES_FORECAST_H
#define GPUSCALE_POLICIES_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

struct policy_forecast;

#define FORECAST_SEASON_SLOTS_MAX 288 // a day in slots of five minutes
#define FORECAST_WINDOW_SLOTS_MAX 64
#define FORECAST_SLOTS_MIN        4

// All its members are 8 bytes long but for the two counts: no padding.
struct forecast {
	uint64_t slots_offset; // of the doubles in the state block
	uint32_t n_slots;      // a season or window; 0: the policy has no forecast
	uint32_t learnt;       // HoltWinters: two seasons were seen
	int64_t index, first;  // slot that is being filled, first slot there is; TIME_NONE
	int64_t n_samples;     // of the slot that is being filled
	double sum, last;      // of its samples; mean of the slot before
	double level, trend;
	double variance; // of the errors one slot ahead
	int64_t n_errors;
	double totals[2], squares; // of the first two seasons: sums of the means, squares of their differences
};

// Slots this configuration needs at this interval (ms).
uint32_t forecast_slots_needed(const struct policy_forecast *config, int64_t interval_ms);
// n_slots doubles at `slots` belong to it from now on; they are set.
void forecast_init(struct forecast *f, double *slots, uint64_t slots_offset, uint32_t n_slots);
// A finite load at time_ms (not smaller than the last). Short gaps are bridged; a long one takes the trend away
// (HoltWinters) or leaves slots empty (Linear); one of two seasons starts anew.
void forecast_observe(struct forecast *f, double *slots, const struct policy_forecast *config, int64_t time_ms,
                      double load);
// The load at time_ms, ahead of the last observation (they come every interval_ms), and the standard deviation of its
// error; both finite. False while there is not enough history: *ret_left_ms says how long that takes yet.
bool forecast_at(const struct forecast *f, const double *slots, const struct policy_forecast *config,
                 int64_t interval_ms, int64_t time_ms, double *ret_load, double *ret_deviation, int64_t *ret_left_ms);
// The length of a slot: ms, rounded down.
int64_t forecast_slot_ms(const struct forecast *f, const struct policy_forecast *config);
// True when what was learnt under one configuration means the same under the other.
bool forecast_is_same(const struct policy_forecast *a, const struct policy_forecast *b);

#endif
