// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective_rule.h"

#include <assert.h>
#include <math.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_load.h"

enum kind { FOLLOW, PEAK, MARGIN, SEASON, PRESENT, DEADLINE, KIND__COUNT };

// clang-format off
static const struct {
	enum kind kind;
	enum objective_forecast forecast;
	int which; // forecast, peak, memory or season
	const char *name;
} families[OBJECTIVE_FAMILY__COUNT] = {
	[OBJECTIVE_FOLLOW_BRISK]     = {FOLLOW, OBJECTIVE_BRISK, OBJECTIVE_PEAK_BRISK, "brisk forecast"},
	[OBJECTIVE_FOLLOW_CALM]      = {FOLLOW, OBJECTIVE_CALM,  OBJECTIVE_PEAK_CALM,  "calm forecast"},
	[OBJECTIVE_PEAK_45M]         = {PEAK,   OBJECTIVE_CALM,  OBJECTIVE_PEAK_SHORT, "peak of 45 minutes"},
	[OBJECTIVE_PEAK_3H]          = {PEAK,   OBJECTIVE_CALM,  OBJECTIVE_PEAK_LONG,  "peak of three hours"},
	[OBJECTIVE_MARGIN_HALF_HOUR] = {MARGIN, OBJECTIVE_CALM,  OBJECTIVE_HALF_HOUR,  "margin over half an hour"},
	[OBJECTIVE_MARGIN_DAY]       = {MARGIN, OBJECTIVE_CALM,  OBJECTIVE_DAY,        "margin over a day"},
	[OBJECTIVE_SEASON_HOUR]      = {SEASON, OBJECTIVE_CALM,  OBJECTIVE_HOURLY,     "season of an hour"},
	[OBJECTIVE_SEASON_DAY]       = {SEASON, OBJECTIVE_CALM,  OBJECTIVE_DAILY,      "season of a day"},
	[OBJECTIVE_PRESENT]          = {PRESENT, OBJECTIVE_BRISK, 0,                   "present demand"},
};
static const float ladders[KIND__COUNT][OBJECTIVE_RUNGS] = {
	[FOLLOW]   = {0.85f, 0.93f, 1,     1.1f,  1.3f,  1.6f,  2.1f,  3},
	[PEAK]     = {0.5f,  0.65f, 0.8f,  0.95f, 1.1f,  1.35f, 1.75f, 2.4f},
	[MARGIN]   = {0,     0.6f,  1.2f,  2,     2.8f,  3.7f,  4.8f,  6.5f},
	[SEASON]   = {0.5f,  0.65f, 0.8f,  0.9f,  1.02f, 1.2f,  1.6f,  2.2f},
	[PRESENT]  = {0.92f, 1,     1.1f,  1.22f, 1.4f,  1.7f,  2.2f,  3},
	// What PRESENT becomes as the wait grows: the backlog alone decides on the leanest rung.
	[DEADLINE] = {0,     0.2f,  0.4f,  0.6f,  0.8f,  0.95f, 1.2f,  1.7f},
};
// clang-format on

// Late share of a level z deviations above the mean: exp(-PRIOR_TAIL (1 + z)). At 1.4, the seven later starts of code
// are 8.9 instead of 8.0 % late on average.
#define PRIOR_TAIL 1.15f
// A rule that follows the load is compared with what it follows instead of the mean, and with so much of the deviation.
#define FOLLOW_DEVIATION 0.55f
#define DEADLINE_PRIOR   0.01f // of that share, where queued work is a matter of a deadline
// Steps of two turns of a season.
static const int32_t season_steps[OBJECTIVE_SEASON__COUNT] = {2 * 3600 / OBJECTIVE_STEP_S,
                                                              2 * 86400 / OBJECTIVE_STEP_S};

// Each family is a loop of its own, so that the compiler computes several rungs at once.
static void family_levels(enum kind kind, int which, const struct objective_view *v, float *restrict level)
{
	const float *restrict k = ladders[kind];
	const float calm = v->peak[OBJECTIVE_PEAK_CALM], widen = v->widen;
	switch (kind) {
	case FOLLOW:
		for (int i = 0; i < OBJECTIVE_RUNGS; i++)
			level[i] = v->peak[which] * (k[i] > 1 ? 1 + (k[i] - 1) * widen : k[i]);
		return;
	case PEAK:
		for (int i = 0; i < OBJECTIVE_RUNGS; i++)
			level[i] = f32_max(calm, v->peak[which] * k[i] * (k[i] > 1 ? widen : 1));
		return;
	case MARGIN:
		for (int i = 0; i < OBJECTIVE_RUNGS; i++)
			level[i] = f32_max(calm, v->mean[which] + k[i] * widen * v->deviation[which]);
		return;
	case PRESENT:
		for (int i = 0; i < OBJECTIVE_RUNGS; i++)
			level[i] = v->present * (k[i] + v->patience * (ladders[DEADLINE][i] - k[i]));
		return;
	default:
		for (int i = 0; i < OBJECTIVE_RUNGS; i++)
			level[i] = f32_max(calm, v->season[which] * k[i]);
		return;
	}
}

void objective_rule_levels(const struct objective_view *v, float ret_levels[OBJECTIVE_RULES])
{
	for (int f = 0; f < OBJECTIVE_FAMILY__COUNT; f++)
		family_levels(families[f].kind, families[f].which, v, &ret_levels[f * OBJECTIVE_RUNGS]);
}

float objective_rule_prior(enum objective_family family, float level, const struct objective_view *v, int32_t steps)
{
	const enum kind kind = families[family].kind;
	const float deviation = v->deviation[OBJECTIVE_HALF_HOUR] * v->widen;
	float z = (level - v->mean[OBJECTIVE_HALF_HOUR]) / (deviation + 1e-3f);
	if (kind == FOLLOW || kind == PRESENT)
		z = (level - objective_rule_forecast(family, v)) / (FOLLOW_DEVIATION * deviation + 1e-3f);
	if (kind == SEASON && steps < season_steps[families[family].which])
		z = -1;
	return f32_min(1, expf(-PRIOR_TAIL * (1 + z)) * (1 - (1 - DEADLINE_PRIOR) * v->patience));
}

float objective_rule_forecast(enum objective_family family, const struct objective_view *v)
{
	return families[family].kind == PRESENT ? v->present : v->forecast[families[family].forecast];
}

void objective_rule_forecasts(const struct objective_view *v, float ret_forecasts[OBJECTIVE_RULES])
{
	for (int f = 0; f < OBJECTIVE_FAMILY__COUNT; f++) {
		float forecast = objective_rule_forecast((enum objective_family)f, v);
		for (int rung = 0; rung < OBJECTIVE_RUNGS; rung++)
			ret_forecasts[f * OBJECTIVE_RUNGS + rung] = forecast;
	}
}

float objective_rule_factor(enum objective_family family, float rung, float wait_s)
{
	float factor = objective_rule_between(ladders[families[family].kind], rung);
	if (families[family].kind != PRESENT)
		return factor;
	return factor + objective_patience(wait_s) * (objective_rule_between(ladders[DEADLINE], rung) - factor);
}

const char *objective_family_name(enum objective_family family)
{
	assert(family < OBJECTIVE_FAMILY__COUNT);
	return families[family].name;
}
