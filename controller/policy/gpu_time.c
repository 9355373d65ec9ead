// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/gpu_time.h"

#include "policies/engine/number.h"
#include "policies/engine/policy.h"

#define GAP_INTERVALS 4

void gpu_time_add(struct gpu_time *t, const struct policy *p, const struct policy_gpus *gpus, int64_t now_ms,
                  int32_t replicas)
{
	int64_t known_ms = t->last_ms ? now_ms - t->last_ms : 0, most_ms = GAP_INTERVALS * p->interval_ms;
	known_ms = known_ms < most_ms ? i64_max(known_ms, 0) : most_ms;
	if (gpus->set) {
		t->used_ms += known_ms * t->replicas * gpus->per_replica;
		t->saved_ms += known_ms * i32_max(p->max_replicas - t->replicas, 0) * gpus->per_replica;
	}
	t->last_ms = now_ms;
	t->replicas = replicas;
}
