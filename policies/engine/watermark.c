// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/watermark.h"

#include <math.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"

struct proposal watermark_propose(const struct policy_watermarks *marks, int32_t multiple, double value,
                                  const struct replica_counts *counts)
{
	double high = marks->high * (1 + marks->tolerance_ratio), low = marks->low * (1 - marks->tolerance_ratio);
	struct proposal p = {.replicas = counts->spec, .compared = value, .limit = high};
	if (counts->ready == 0) {
		p.reason = REASON_NO_READY_REPLICAS;
		return p;
	}
	double ready = (double)counts->ready;
	double usage = marks->algorithm == WATERMARK_AVERAGE ? value / ready : value;
	p.compared = usage;
	if (usage > high) {
		int32_t n = replicas_from_whole(ceil(ready * usage / marks->high));
		p.replicas = i32_max(i32_from_i64(multiple_up(n, multiple)), counts->spec);
		p.reason = REASON_ABOVE_HIGH_WATERMARK;
		p.direction = 1;
	} else if (usage < low) {
		int32_t n = i32_max(1, replicas_from_whole(floor(ready * usage / marks->low)));
		p.replicas = i32_min(i32_from_i64(multiple_up(n, multiple)), counts->spec);
		p.limit = low;
		p.reason = REASON_BELOW_LOW_WATERMARK;
		p.direction = -1;
	} else {
		p.reason = REASON_INSIDE_WATERMARKS;
	}
	return p;
}
