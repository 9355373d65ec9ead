// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/plausible.h"

#include <math.h>

#include "policies/engine/idle.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"

void doubt_init(struct doubt *d)
{
	*d = (struct doubt){.last_ms = TIME_NONE};
}

bool doubt_observe(struct doubt *d, bool is_beyond, int64_t now_ms, int64_t gap_ms, int64_t after_ms)
{
	if (!is_beyond) {
		doubt_init(d);
		return false;
	}
	int64_t since_ms = d->last_ms == TIME_NONE ? 0 : i64_max(i64_sub(now_ms, d->last_ms), 0);
	d->last_ms = now_ms;
	d->lasted_ms = i64_add(d->lasted_ms, since_ms < gap_ms ? since_ms : gap_ms);
	return d->lasted_ms < after_ms;
}

// The maxima of schedules that are not active count as well, so that the limit of what is remembered does not move.
double plausible_replicas(const struct policy *policy)
{
	int32_t most = i32_max(policy->max_replicas, 1);
	for (size_t i = 0; i < policy->n_schedules; i++) {
		const struct policy_schedule *s = &policy->schedules[i];
		most = i32_max(most, s->min_set ? s->min_replicas : 0);
		most = i32_max(most, s->max_set ? s->max_replicas : 0);
		most = i32_max(most, s->replicas_set ? s->replicas : 0);
	}
	return (double)PLAUSIBLE_MULTIPLE * (double)most;
}

double plausible_load(const struct policy *policy, size_t i)
{
	const struct policy_signal *s = &policy->signals[i];
	if (s->watermarks.set)
		return plausible_replicas(policy) * s->watermarks.high;
	if (!s->target.set)
		return INFINITY;
	return plausible_replicas(policy) * (s->target.type == TARGET_REPLICAS ? 1 : s->target.value);
}

double plausible_sample(const struct policy *policy, size_t i, double value)
{
	uint32_t reads = policy->inputs | (policy->combine == COMBINE_FORMULA ? policy->formula.reads_value : 0);
	double most = plausible_load(policy, i);
	if (!isfinite(most) || (reads >> i & 1))
		return value;
	const struct policy_activation *a = policy->idle.set ? idle_activation_of(&policy->idle, i) : NULL;
	if (a)
		most = fmax(most, PLAUSIBLE_MULTIPLE * a->above);
	return fmin(fmax(value, -most), most);
}
