// SPDX-License-Identifier: Apache-2.0
#include "test/support/manual_clock.h"

static int64_t manual_wall_ms(const struct clock *c)
{
	return c->manual_wall_ms;
}

static int64_t manual_mono_ms(const struct clock *c)
{
	return c->manual_mono_ms;
}

void clock_init_manual(struct clock *c, int64_t wall_ms)
{
	*c = (struct clock){.wall_ms = manual_wall_ms,
	                    .mono_ms = manual_mono_ms,
	                    .boot_ms = manual_mono_ms,
	                    .manual_wall_ms = wall_ms};
}

void clock_advance_ms(struct clock *c, int64_t delta_ms)
{
	c->manual_wall_ms += delta_ms;
	c->manual_mono_ms += delta_ms;
}
