// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/skill.h"

#include <math.h>
#include <string.h>

#include "policies/engine/number.h"

#define SKILL_TO_START 0.05 // the lead over the naive forecasts that turns the model on: no flapping around 0
#define INDIFFERENT    0.01 // share of the mean load: smaller errors, and smaller leads of the season, change no decision

void skill_reset(struct skill *s)
{
	memset(s, 0, sizeof *s);
	s->newest_ms = s->compared_until_ms = TIME_NONE;
}

void skill_drop_pending(struct skill *s)
{
	s->newest_ms = s->compared_until_ms = TIME_NONE;
	s->start = s->len = 0;
}

// Each comparison stands for the time since the previous one; after a gap, for at most max_ms.
static void compare(struct skill *s, const struct skill_pending *p, int64_t since_ms, int64_t max_ms, double load)
{
	int64_t stands_for_ms = since_ms < max_ms ? since_ms : max_ms;
	double fade = exp(-(double)since_ms / (double)SKILL_DAY_MS), w = (double)stands_for_ms;
	s->weight = s->weight * fade + w;
	s->load = s->load * fade + w * fabs(load);
	s->model = s->model * fade + w * fabs(p->model - load);
	s->season = s->season * fade + w * fabs(p->season - load);
	s->last = s->last * fade + w * fabs(p->last - load);
	s->compared_until_ms = p->due_ms;
	s->compared_ms = i64_add(s->compared_ms, stands_for_ms);
}

void skill_observe(struct skill *s, int64_t gap_ms, int64_t time_ms, double load)
{
	int64_t before_ms = s->newest_ms == TIME_NONE ? time_ms : s->newest_ms;
	int64_t step_ms = i64_sub(time_ms, before_ms);
	for (; s->len > 0 && s->pending[s->start].due_ms <= time_ms; s->len--) {
		const struct skill_pending *p = &s->pending[s->start];
		s->start = (s->start + 1) % SKILL_PENDING_MAX;
		if (step_ms <= 0 || step_ms > gap_ms)
			continue;
		double part = (double)i64_sub(p->due_ms, before_ms) / (double)step_ms;
		int64_t since_ms =
		        s->compared_until_ms == TIME_NONE ? step_ms : i64_sub(p->due_ms, s->compared_until_ms);
		compare(s, p, since_ms, gap_ms, s->newest + part * (load - s->newest));
	}
	s->newest_ms = time_ms;
	s->newest = load;
	if (!isfinite(s->weight + s->load + s->model + s->season + s->last))
		skill_reset(s);
}

void skill_remember(struct skill *s, int64_t now_ms, const struct skill_pending *forecasts)
{
	int64_t every_ms = i64_sub(forecasts->due_ms, now_ms) / (SKILL_PENDING_MAX - 1) + 1;
	uint32_t newest = (s->start + s->len - 1) % SKILL_PENDING_MAX;
	if (s->len == SKILL_PENDING_MAX ||
	    (s->len > 0 && i64_sub(forecasts->due_ms, s->pending[newest].due_ms) < every_ms))
		return;
	s->pending[(s->start + s->len) % SKILL_PENDING_MAX] = *forecasts;
	s->len++;
}

bool skill_evaluate(struct skill *s, int64_t trial_ms)
{
	// For a load that repeats exactly, the model and the season before are the same forecast.
	double indifferent = INDIFFERENT * s->load;
	double naive = fmin(fmax(s->last, indifferent), s->season + indifferent);
	if (s->compared_ms < trial_ms || s->weight <= 0)
		s->on = 0;
	else if (s->model <= (1 - SKILL_TO_START) * naive)
		s->on = 1;
	else if (s->model >= naive)
		s->on = 0;
	return s->on;
}

void skill_errors(const struct skill *s, double *ret_model, double *ret_naive)
{
	*ret_model = s->weight > 0 ? s->model / s->weight : 0;
	*ret_naive = s->weight > 0 ? fmin(s->last, s->season) / s->weight : 0;
}
