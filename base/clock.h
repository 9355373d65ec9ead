// SPDX-License-Identifier: Apache-2.0
// Where time comes from. Read once per tick and passed on as plain numbers; only the shell holds a clock.
// wall_ms: ms since the epoch, for stamps. mono_ms: for intervals; never mixed. boot_ms: as mono_ms, but goes on while
// the machine is suspended: for how long something given by another machine still holds.
#ifndef GPUSCALE_BASE_CLOCK_H
#define GPUSCALE_BASE_CLOCK_H

#include <stdint.h>

struct clock {
	int64_t (*wall_ms)(const struct clock *c);
	int64_t (*mono_ms)(const struct clock *c);
	int64_t (*boot_ms)(const struct clock *c);
	int64_t manual_wall_ms; // used by the manual clock only
	int64_t manual_mono_ms; // boot_ms, too
};

// The machine's clocks.
void clock_init_real(struct clock *c);
// Stands still at wall_ms (mono 0) until advanced: for tests.
void clock_init_manual(struct clock *c, int64_t wall_ms);
void clock_advance_ms(struct clock *c, int64_t delta_ms);
static inline int64_t clock_wall_ms(const struct clock *c)
{
	return c->wall_ms(c);
}
static inline int64_t clock_mono_ms(const struct clock *c)
{
	return c->mono_ms(c);
}
static inline int64_t clock_boot_ms(const struct clock *c)
{
	return c->boot_ms(c);
}

#endif
