// SPDX-License-Identifier: Apache-2.0
// Detects that the wall clock was set, by comparison with the boot clock, which is never set. Drift and slewing are not
// steps.
#ifndef GPUSCALE_RUNTIME_SHARD_CLOCK_STEP_DETECTOR_H
#define GPUSCALE_RUNTIME_SHARD_CLOCK_STEP_DETECTOR_H

#include <stdint.h>

struct clock;

#define CLOCK_STEP_MS 2500 // a larger change of the wall clock is a step

struct clock_step_detector {
	int64_t limit_ms;
	int64_t offset_ms; // wall - boot, at the last check
};

void clock_step_detector_init(struct clock_step_detector *g, const struct clock *clock, int64_t limit_ms);
// Returns by how much the wall clock was set since the last check, if that exceeds the limit; else 0. Reports each step
// once.
int64_t clock_step_detector_check(struct clock_step_detector *g, const struct clock *clock);

#endif
