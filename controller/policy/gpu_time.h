// SPDX-License-Identifier: Apache-2.0
// The GPU time of one policy: what its replicas used, and what maxReplicas would have used beyond that.
#ifndef GPUSCALE_CONTROLLER_POLICY_GPU_TIME_H
#define GPUSCALE_CONTROLLER_POLICY_GPU_TIME_H

#include <stdint.h>

struct policy;
struct policy_gpus;

struct gpu_time {
	int64_t used_ms;  // GPU-milliseconds: replicas x GPUs per replica x time
	int64_t saved_ms; // likewise, of maxReplicas minus the replicas
	int64_t last_ms;  // when `replicas` was known last; 0: never
	int32_t replicas; // since then
};

// The target has `replicas` from now_ms on (ms of the wall clock). Adds the time since the last call with the replicas
// of that call, if `gpus` is set. A clock that was set back adds nothing, and a gap of more than four intervals of the
// policy adds four: nothing is known about the rest.
void gpu_time_add(struct gpu_time *t, const struct policy *p, const struct policy_gpus *gpus, int64_t now_ms,
                  int32_t replicas);

#endif
