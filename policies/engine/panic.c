// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/panic.h"

#include <math.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/proposal.h"

void panic_init(struct panic *s)
{
	*s = (struct panic){.over_ms = TIME_NONE};
}

int32_t panic_wanted(const struct policy_signal *signal, double value, const struct replica_counts *counts)
{
	double ready = (double)i32_max(counts->ready, 1);
	if (signal->watermarks.set) {
		double base = signal->watermarks.algorithm == WATERMARK_ABSOLUTE ? ready : 1;
		return replicas_from_whole(ceil(value * base / signal->watermarks.high));
	}
	if (signal->target.type == TARGET_REPLICAS)
		return replicas_from_whole(ceil(value));
	double base = signal->target.type == TARGET_VALUE ? ready : 1;
	return replicas_from_whole(ceil(value / signal->target.value * base));
}

bool panic_observe(struct panic *s, int64_t now_ms, int32_t wanted, int32_t stable, int32_t ready, double threshold,
                   int64_t stable_ms, int32_t *ret_replicas, int64_t *ret_left_ms)
{
	*ret_left_ms = 0;
	*ret_replicas = stable;
	if ((double)wanted / (double)i32_max(ready, 1) >= threshold)
		s->over_ms = now_ms;
	else if (s->over_ms != TIME_NONE && i64_add(s->over_ms, stable_ms) < now_ms)
		panic_init(s);
	if (s->over_ms == TIME_NONE)
		return false;
	s->highest = i32_max(s->highest, i32_max(stable, wanted));
	*ret_replicas = s->highest;
	*ret_left_ms = i64_max(i64_sub(i64_add(s->over_ms, stable_ms), now_ms), 0);
	return true;
}
