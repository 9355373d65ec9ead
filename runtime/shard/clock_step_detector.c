// SPDX-License-Identifier: Apache-2.0
#include "runtime/shard/clock_step_detector.h"

#include "base/clock.h"

#define READS_MAX 5

// A process that is interrupted between reading the two clocks must not report a step, so it reads them again.
static int64_t offset_ms(const struct clock *clock)
{
	int64_t before = clock_boot_ms(clock), wall = 0;
	for (int i = 0; i < READS_MAX; i++) {
		wall = clock_wall_ms(clock);
		int64_t after = clock_boot_ms(clock);
		if (after - before <= 1)
			break;
		before = after;
	}
	return wall - before;
}

void clock_step_detector_init(struct clock_step_detector *g, const struct clock *clock, int64_t limit_ms)
{
	*g = (struct clock_step_detector){.limit_ms = limit_ms, .offset_ms = offset_ms(clock)};
}

int64_t clock_step_detector_check(struct clock_step_detector *g, const struct clock *clock)
{
	int64_t now = offset_ms(clock), step = now - g->offset_ms;
	g->offset_ms = now;
	return step > g->limit_ms || step < -g->limit_ms ? step : 0;
}
