// SPDX-License-Identifier: Apache-2.0
// Where ticks go and what stands beside them. Private to the timeline.
#ifndef GPUSCALE_TEST_SUPPORT_TIMELINE_AXIS_H
#define GPUSCALE_TEST_SUPPORT_TIMELINE_AXIS_H

#include <stdint.h>

#include "test/support/timeline.h"

#define TIMELINE_LABEL_BYTES 32

// Step of 1, 2, 2.5 or 5 times a power of ten (a multiple of min_step, unless that is 0) that cuts 0..max into `wanted`
// pieces or fewer.
double timeline_value_step(double max, int wanted, double min_step);
// The first multiple of step at or above max; at least one step.
double timeline_value_top(double max, double step);
// "0", "0.25", "150", "1.5k", "2M": value as a tick of that step.
void timeline_value_label(char out[static TIMELINE_LABEL_BYTES], double value);
// "80%" for 0.8.
void timeline_percent_label(char out[static TIMELINE_LABEL_BYTES], double ratio);
// A step of whole seconds, minutes, hours or days that cuts span_ms into `wanted` pieces or fewer. At least 1 ms.
int64_t timeline_time_step_ms(int64_t span_ms, int wanted);
// Elapsed, by the step: "250 ms", "2:30" (min:s), "5 min", "3 h", "2 d"; UTC: "09:00:30", "09:00", "01-05". offset_ms:
// since the origin of the axis (elapsed) or the epoch (UTC).
void timeline_time_label(char out[static TIMELINE_LABEL_BYTES], enum timeline_clock clock, int64_t offset_ms,
                         int64_t step_ms);

#endif
