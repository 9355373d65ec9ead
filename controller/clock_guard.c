// SPDX-License-Identifier: Apache-2.0
#include "controller/clock_guard.h"

#include "base/clock.h"

static int64_t offset_ms(const struct clock *clock)
{
	return clock_wall_ms(clock) - clock_boot_ms(clock);
}

void clock_guard_init(struct clock_guard *g, const struct clock *clock, int64_t limit_ms)
{
	*g = (struct clock_guard){.limit_ms = limit_ms, .offset_ms = offset_ms(clock)};
}

int64_t clock_guard_check(struct clock_guard *g, const struct clock *clock)
{
	int64_t now = offset_ms(clock), step = now - g->offset_ms;
	g->offset_ms = now;
	return step > g->limit_ms || step < -g->limit_ms ? step : 0;
}
