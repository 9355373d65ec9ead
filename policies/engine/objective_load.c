// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective_load.h"

#include <math.h>
#include <string.h>

#include "policies/engine/number.h"

float block_max_add(struct block_max *b, int n, float value)
{
	int block = n < BLOCK_MAX_BLOCKS - 1 ? 1 : n / (BLOCK_MAX_BLOCKS - 1);
	if (++b->filled > block) {
		b->filled = 1;
		b->at = (uint16_t)((b->at + 1) % BLOCK_MAX_BLOCKS);
		b->blocks[b->at] = 0;
	}
	if (value > b->blocks[b->at])
		b->blocks[b->at] = value;
	float largest = 0;
	for (int i = 0; i < BLOCK_MAX_BLOCKS; i++)
		largest = b->blocks[i] > largest ? b->blocks[i] : largest;
	return largest;
}

#define STEP_S ((float)OBJECTIVE_STEP_S)

// Time constants in seconds: of the forecasts' level and trend, and of the means.
static const float level_s[OBJECTIVE_FORECAST__COUNT] = {70, 140};
static const float trend_s[OBJECTIVE_FORECAST__COUNT] = {340, 1500};
static const float mean_s[OBJECTIVE_MEMORY__COUNT] = {1800, 86400};
static const int peak_steps[OBJECTIVE_PEAK__COUNT] = {16, 16, 160, 640};

#define TREND_AFTER 8    // steps before a trend is learnt
#define WIDEN_FEW   4.2f // as Student's t: a margin after n samples is 1 + WIDEN_FEW / n times as wide
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

// ---- bursts ----

// What the constants do is measured as in objective.c.
#define BURST       1.8f   // until learnt, and for a long wait; at 2.15, smooth loads cost 0.4 % more, code 3 %
#define MARGIN      0.1f   // above the learnt burst; without it, alibaba is 1.5 % late at a wait of 2 s
#define EVIDENCE    300.0f // steps that differ between the queues, at half of the long wait, to count as much as BURST
#define MEMORY_S    86400.0f // in which the comparison fades
#define READY_LEAST 0.001f   // replicas: without any, everything waits too long

static const float bursts[OBJECTIVE_BURST_QUEUES] = {1, 1.5f, 2, 2.5f, OBJECTIVE_BURST_MOST};

static float share_filled(float backlog, float limit)
{
	return f32_min(1, backlog / limit);
}

// Serves a step, a pause and then the burst, and returns the share of the limit that the queue filled on average.
static float serve(float *backlog, float burst, float demand, float ready, float limit)
{
	float burst_s = STEP_S / burst, pause_s = STEP_S - burst_s;
	float before = f32_max(0, *backlog - ready * pause_s);
	float after = f32_max(0, before + (demand * burst - ready) * burst_s);
	float drain_s = *backlog > ready * pause_s ? pause_s : ready > 0 ? *backlog / ready : 0;
	float drained = share_filled(*backlog, limit) + share_filled(before, limit);
	float grown = share_filled(before, limit) + share_filled(after, limit);
	*backlog = after;
	return (drained * drain_s + grown * burst_s) / (2 * STEP_S);
}

void objective_burst_learn(struct objective_burst *b, float demand, float backlog, float ready, float wait_s)
{
	const float remains = 1 - STEP_S / MEMORY_S, limit = f32_max(wait_s, 1) * f32_max(ready, READY_LEAST);
	if (wait_s >= OBJECTIVE_BURST_WAIT_S)
		return;
	for (int i = 0; i < OBJECTIVE_BURST_QUEUES; i++)
		b->filled[i] = b->filled[i] * remains + serve(&b->backlog[i], bursts[i], demand, ready, limit);
	b->filled_really = b->filled_really * remains + share_filled(backlog, limit);
}

// Returns the burst whose queue was as long as the real one; between two queues it is interpolated.
static float learnt(const struct objective_burst *b)
{
	const int last = OBJECTIVE_BURST_QUEUES - 1;
	if (b->filled_really <= b->filled[0])
		return bursts[0];
	for (int i = 0; i < last; i++)
		if (b->filled_really < b->filled[i + 1])
			return bursts[i] + (bursts[i + 1] - bursts[i]) * (b->filled_really - b->filled[i]) /
			                           (b->filled[i + 1] - b->filled[i]);
	return bursts[last];
}

float objective_burst(const struct objective_burst *b, float wait_s)
{
	const float most = bursts[OBJECTIVE_BURST_QUEUES - 1], part = wait_s / OBJECTIVE_BURST_WAIT_S;
	if (part >= 1)
		return BURST;
	float unlearnt = 1 + (BURST - 1) * part, weight = 1 + EVIDENCE * part / (1 - part);
	float evidence = f32_max(0, b->filled[OBJECTIVE_BURST_QUEUES - 1] - b->filled[0]);
	return (unlearnt * weight + f32_min(learnt(b) + MARGIN, most) * evidence) / (weight + evidence);
}
