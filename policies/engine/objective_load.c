// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective_load.h"

#include <math.h>
#include <string.h>

#include "policies/engine/number.h"

#define STEP_S ((float)OBJECTIVE_STEP_S)

// Time constants in seconds: of the forecasts' level and trend, and of the means.
static const float level_s[OBJECTIVE_FORECAST__COUNT] = {60, 140};
static const float trend_s[OBJECTIVE_FORECAST__COUNT] = {300, 1500};
static const float mean_s[OBJECTIVE_MEMORY__COUNT] = {1800, 86400};
static const int peak_steps[OBJECTIVE_PEAK__COUNT] = {16, 16, 160, 640};

#define TREND_AFTER 8    // steps before a trend is learnt
#define WIDEN_FEW   4.0f // as Student's t: a margin after n samples is 1 + WIDEN_FEW / n times as wide
#define SEASON_FADE 0.7f // of an earlier visit's requirement that is larger than the last one's
#define PRESENT     4    // steps of the mean that is the present demand
#define PATIENT_S   240  // a longer wait takes the level of the brisk forecast for it

// Shares of the wait that the levels of the forecasts take at least: what is served within it need not be foreseen.
static const float wait_shares[OBJECTIVE_FORECAST__COUNT] = {0.25f, 0.5f};

static float requirement_of(const struct objective_load *l, int32_t steps, float burst, float wait_s)
{
	float work = STEP_S * l->recent[0];
	float largest = work / (STEP_S / burst + wait_s);
	for (int i = 1; i < OBJECTIVE_RECENT && i <= steps; i++) {
		work += STEP_S * l->recent[i];
		largest = f32_max(largest, work / (STEP_S * ((float)i + 1 / burst) + wait_s));
	}
	return largest;
}

// Holt's method, with a weight that starts as the plain mean's. Returns the demand ahead_s from now.
static float forecast_step(struct objective_load *l, int i, int32_t steps, float demand, float least_weight,
                           float ahead_s, float wait_s)
{
	float weight = f32_max(STEP_S / f32_max(level_s[i], wait_shares[i] * wait_s), least_weight);
	float expected = l->level[i] + l->trend[i] * STEP_S;
	float level = expected + weight * (demand - expected);
	if (steps > TREND_AFTER)
		l->trend[i] += STEP_S / trend_s[i] * ((level - l->level[i]) / STEP_S - l->trend[i]);
	l->level[i] = level;
	return f32_max(0, level + l->trend[i] * ahead_s);
}

// The deviation is that of the requirement from the mean demand: what a margin on top of the mean has to cover.
static float deviation_step(struct objective_load *l, int i, int32_t steps, const struct objective_view *v,
                            float least_weight)
{
	float weight = f32_max(STEP_S / mean_s[i], least_weight);
	float error = v->requirement - l->mean[i];
	if (steps > 0)
		l->variance[i] += weight * (error * error - l->variance[i]);
	l->mean[i] += weight * (v->demand - l->mean[i]);
	return sqrtf(l->variance[i]);
}

// Adds a requirement to the slot `at` of a season. When time has moved on, the slot that was left keeps the largest
// requirement of its visit, or what remains of an earlier, larger one.
static void season_add(float *slots, float *now, int32_t *last, int32_t at, int32_t steps, float requirement)
{
	if (at != *last || steps == 0) {
		if (steps > 0)
			slots[*last] = f32_max(*now, slots[*last] * SEASON_FADE);
		*last = at;
		*now = 0;
	}
	*now = f32_max(*now, requirement);
}

// Returns the largest slot from `first` to `last`, counted from the current slot `at`, whose visit has reached `now`.
static float season_max(const float *slots, int32_t n, float now, int32_t at, int first, int last)
{
	float largest = 0;
	for (int i = first; i <= last; i++)
		largest = f32_max(largest, i ? slots[(at + i + n) % n] : f32_max(slots[at], now));
	return largest;
}

static void season_step(struct objective_load *l, int32_t steps, int64_t time_s, float startup_s,
                        struct objective_view *v)
{
	int32_t of_day = (int32_t)(((time_s % 86400) + 86400) % 86400);
	int32_t minute = of_day / 60 % OBJECTIVE_HOUR_SLOTS, quarter = of_day / 900;
	season_add(l->hour, &l->hour_now, &l->hour_at, minute, steps, v->requirement);
	season_add(l->day, &l->day_now, &l->day_at, quarter, steps, v->requirement);
	int minutes = (int)((startup_s + 60) / 60), quarters = (int)(((float)(of_day % 900) + startup_s + 60) / 900);
	minutes = minutes < OBJECTIVE_HOUR_SLOTS - 3 ? minutes : OBJECTIVE_HOUR_SLOTS - 3;
	v->season[OBJECTIVE_HOURLY] = season_max(l->hour, OBJECTIVE_HOUR_SLOTS, l->hour_now, minute, -1, minutes);
	v->season[OBJECTIVE_DAILY] = season_max(l->day, OBJECTIVE_DAY_SLOTS, l->day_now, quarter, 0, quarters);
}

float objective_patience(float wait_s)
{
	return f32_min(f32_max((wait_s - 60) / 540, 0), 1);
}

static float present_of(const struct objective_load *l, int32_t steps)
{
	const int n = i32_min(steps + 1, PRESENT);
	float sum = 0;
	for (int i = 0; i < n; i++)
		sum += l->recent[i];
	return sum / (float)n;
}

void objective_load_step(struct objective_load *l, int32_t steps, float demand, int64_t time_s, float burst,
                         float wait_s, float startup_s, struct objective_view *ret_view)
{
	struct objective_view *v = ret_view;
	float least_weight = 1.0f / (float)(steps + 1);
	memmove(l->recent + 1, l->recent, sizeof l->recent - sizeof l->recent[0]);
	l->recent[0] = demand;
	v->demand = demand;
	v->requirement = requirement_of(l, steps, burst, wait_s);
	v->widen = 1 + WIDEN_FEW * least_weight;
	for (int i = 0; i < OBJECTIVE_FORECAST__COUNT; i++) {
		if (steps == 0)
			l->level[i] = demand;
		v->forecast[i] = forecast_step(l, i, steps, demand, least_weight, startup_s + STEP_S, wait_s);
	}
	for (int i = 0; i < OBJECTIVE_MEMORY__COUNT; i++) {
		v->deviation[i] = deviation_step(l, i, steps, v, least_weight);
		v->mean[i] = l->mean[i];
	}
	for (int i = 0; i < OBJECTIVE_PEAK__COUNT; i++)
		v->peak[i] = block_max_add(&l->peaks[i], peak_steps[i],
		                           i < OBJECTIVE_FORECAST__COUNT ? v->forecast[i] : v->requirement);
	v->present = wait_s > PATIENT_S ? l->level[OBJECTIVE_BRISK] : present_of(l, steps);
	v->patience = objective_patience(wait_s);
	season_step(l, steps, time_s, startup_s, v);
}

void objective_view_scale(struct objective_view *v, float factor)
{
	v->demand *= factor;
	v->requirement *= factor;
	v->present *= factor;
	for (int i = 0; i < OBJECTIVE_FORECAST__COUNT; i++)
		v->forecast[i] *= factor;
	for (int i = 0; i < OBJECTIVE_MEMORY__COUNT; i++) {
		v->mean[i] *= factor;
		v->deviation[i] *= factor;
	}
	for (int i = 0; i < OBJECTIVE_PEAK__COUNT; i++)
		v->peak[i] *= factor;
	for (int i = 0; i < OBJECTIVE_SEASON__COUNT; i++)
		v->season[i] *= factor;
}
