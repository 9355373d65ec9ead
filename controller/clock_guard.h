// SPDX-License-Identifier: Apache-2.0
// Notices that the wall clock was set: it is compared with the boot clock, which nobody sets. Drift, and a clock that
// is slowly led back to the right time, are followed.
#ifndef GPUSCALE_CONTROLLER_CLOCK_GUARD_H
#define GPUSCALE_CONTROLLER_CLOCK_GUARD_H

#include <stdint.h>

struct clock;

struct clock_guard {
	int64_t limit_ms;
	int64_t offset_ms; // wall - boot, as last seen
};

void clock_guard_init(struct clock_guard *g, const struct clock *clock, int64_t limit_ms);
// By how much the wall clock jumped since the last look, when that is more than the limit; else 0. A jump is told once.
int64_t clock_guard_check(struct clock_guard *g, const struct clock *clock);

#endif
