// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/sustain.h"

#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/state.h"

void sustain_observe(struct state_signal *g, int direction, int64_t time_ms)
{
	if (direction <= 0)
		g->up_since_ms = TIME_NONE;
	else if (g->up_since_ms == TIME_NONE)
		g->up_since_ms = time_ms;
	if (direction >= 0)
		g->down_since_ms = TIME_NONE;
	else if (g->down_since_ms == TIME_NONE)
		g->down_since_ms = time_ms;
}

int64_t sustain_left_ms(const struct state_signal *g, const struct policy_sustain *sustain, int direction,
                        int64_t now_ms)
{
	if (direction == 0)
		return 0;
	int64_t since_ms = direction > 0 ? g->up_since_ms : g->down_since_ms;
	int64_t needed_ms = direction > 0 ? sustain->up_ms : sustain->down_ms;
	if (since_ms == TIME_NONE)
		since_ms = now_ms;
	return i64_max(i64_sub(i64_add(since_ms, needed_ms), now_ms), 0);
}
