// SPDX-License-Identifier: Apache-2.0
// The source of time. The shell reads it once per tick and passes plain numbers on; only the shell has a clock.
// wall_ms: ms since the epoch, for stamps. mono_ms: for intervals; the two are never mixed. boot_ms: like mono_ms, but
// includes the time while the machine is suspended, for grants of other machines that expire (leases).
#ifndef GPUSCALE_BASE_CLOCK_H
#define GPUSCALE_BASE_CLOCK_H

#include <stdint.h>

struct clock {
	int64_t (*wall_ms)(const struct clock *c);
	int64_t (*mono_ms)(const struct clock *c);
	int64_t (*boot_ms)(const struct clock *c);
	int64_t manual_wall_ms, manual_mono_ms; // time of a clock set by hand (test/support/manual_clock.h)
};

// The machine's clocks.
void clock_init_real(struct clock *c);
// Returns the machine's monotonic clock in microseconds, for measured durations.
int64_t clock_real_mono_us(void);
// Sleeps for `ms`.
void clock_pause_ms(int64_t ms);
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
