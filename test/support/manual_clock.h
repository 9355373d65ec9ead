// SPDX-License-Identifier: Apache-2.0
// A clock that is set by hand.
#ifndef GPUSCALE_TEST_SUPPORT_MANUAL_CLOCK_H
#define GPUSCALE_TEST_SUPPORT_MANUAL_CLOCK_H

#include <stdint.h>

#include "base/clock.h"

// The clock stays at wall_ms (mono_ms and boot_ms: 0) until it is advanced.
void clock_init_manual(struct clock *c, int64_t wall_ms);
void clock_advance_ms(struct clock *c, int64_t delta_ms);

#endif
