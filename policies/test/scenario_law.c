// SPDX-License-Identifier: Apache-2.0
#include "policies/test/scenario_law.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "policies/engine/decision.h"

static int64_t longer(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t law_flap_ms(const struct policy *p)
{
	int64_t ms = longer(p->scale_up.stabilization_window_ms, p->scale_down.stabilization_window_ms);
	ms = longer(ms, longer(p->cooldown.up_ms, p->cooldown.down_ms));
	for (size_t i = 0; i < p->n_signals; i++)
		ms = longer(ms, longer(p->signals[i].sustain.up_ms, p->signals[i].sustain.down_ms));
	return ms > 0 ? ms : LAW_FLAP_MS;
}

static int direction_of(int32_t from, int32_t to)
{
	return (to > from) - (to < from);
}

void law_remember(struct law_memory *m, int64_t now_ms, int32_t from_replicas, int32_t to_replicas)
{
	int direction = direction_of(from_replicas, to_replicas);
	if (direction == 0)
		return;
	m->direction = direction;
	m->scaled_ms = now_ms;
}

bool law_within_bounds(const struct policy *p, const struct decision *d, char why[LAW_TEXT_BYTES])
{
	if (d->reason == REASON_SCALING_DISABLED || d->reason == REASON_PAUSED ||
	    (d->desired >= d->min_replicas && d->desired <= d->max_replicas))
		return true;
	snprintf(why, LAW_TEXT_BYTES, "%d is outside %d..%d", d->desired, d->min_replicas, d->max_replicas);
	return false;
}

bool law_no_flap(const struct policy *p, const struct law_memory *m, const struct decision *d, char why[LAW_TEXT_BYTES])
{
	int direction = direction_of(d->current, d->desired);
	int64_t since_ms = d->time_ms - m->scaled_ms, window_ms = law_flap_ms(p);
	if (direction == 0 || direction != -m->direction || since_ms >= window_ms)
		return true;
	char since[NUM_TEXT_BYTES], window[NUM_TEXT_BYTES];
	num_format_duration_ms(since, since_ms);
	num_format_duration_ms(window, window_ms);
	snprintf(why, LAW_TEXT_BYTES, "%d -> %d reverses the scale of %s before, within %s", d->current, d->desired,
	         since, window);
	return false;
}

// A number that is recent enough to use.
static bool has_data(const struct obs_signal *seen, const struct policy_signal *signal, int64_t now_ms)
{
	for (size_t i = 0; seen->state == OBS_OK && i < seen->n_series; i++)
		if (isfinite(seen->series[i].value) &&
		    (signal->stale_after_ms == 0 || now_ms - seen->series[i].time_ms <= signal->stale_after_ms))
			return true;
	return false;
}

bool law_hold_on_no_data(const struct policy *p, const struct observation *o, const struct decision *d,
                         char why[LAW_TEXT_BYTES])
{
	bool outside = d->current < d->min_replicas || d->current > d->max_replicas;
	if (d->desired == d->current || outside)
		return true;
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].on_missing != ON_MISSING_HOLD || has_data(&o->signals[i], &p->signals[i], d->time_ms))
			return true;
	snprintf(why, LAW_TEXT_BYTES, "%d -> %d although no signal has data", d->current, d->desired);
	return false;
}

bool law_monotone_in_load(const struct decision *d, const struct decision *with_more, char why[LAW_TEXT_BYTES])
{
	if (with_more->desired >= d->desired)
		return true;
	snprintf(why, LAW_TEXT_BYTES, "with %g %% more of everything %d are wanted, fewer than %d", LAW_MORE_LOAD * 100,
	         with_more->desired, d->desired);
	return false;
}

double law_more_load(double value)
{
	return value + fabs(value) * LAW_MORE_LOAD;
}
