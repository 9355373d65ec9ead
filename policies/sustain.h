// SPDX-License-Identifier: Apache-2.0
// How long a signal has pushed one way without a break: `sustain`.
// WPA: upscaleDelayAboveWatermarkSeconds, downscaleDelayBelowWatermarkSeconds, for every kind of signal.
#ifndef GPUSCALE_POLICIES_SUSTAIN_H
#define GPUSCALE_POLICIES_SUSTAIN_H

#include <stdint.h>

struct policy_sustain;
struct state_signal;

// Tells the timers what the signal does at time_ms: +1 pushes up, -1 down, 0 neither or nothing usable (both restart).
void sustain_observe(struct state_signal *g, int direction, int64_t time_ms);

// How much longer the push must hold before it counts: ms, 0 = it counts. direction as observed last.
int64_t sustain_left_ms(const struct state_signal *g, const struct policy_sustain *sustain, int direction,
                        int64_t now_ms);

#endif
