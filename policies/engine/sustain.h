// SPDX-License-Identifier: Apache-2.0
// How long a signal has asked for one direction without a break: `sustain`.
// WPA: upscaleDelayAboveWatermarkSeconds, downscaleDelayBelowWatermarkSeconds, for every kind of signal.
#ifndef GPUSCALE_POLICIES_ENGINE_SUSTAIN_H
#define GPUSCALE_POLICIES_ENGINE_SUSTAIN_H

#include <stdint.h>

struct policy_sustain;
struct state_signal;

// Updates the timers: at time_ms the signal asks for more (direction +1), for fewer (-1), or for neither or has no
// usable data (0: both timers restart).
void sustain_observe(struct state_signal *g, int direction, int64_t time_ms);

// Returns how much longer, in ms, the signal must ask for `direction`, which was observed last, before it counts; 0 =
// it counts.
int64_t sustain_left_ms(const struct state_signal *g, const struct policy_sustain *sustain, int direction,
                        int64_t now_ms);

#endif
