// SPDX-License-Identifier: Apache-2.0
// Layout of the flat state block (private to policies/): a header, one entry per signal, then the sample and mark
// arrays. No pointers and no padding, so that a copy of the bytes is a copy of the state and equal states are equal
// bytes.
#ifndef GPUSCALE_POLICIES_STATE_H
#define GPUSCALE_POLICIES_STATE_H

#include <stdint.h>

#include "policies/fallback.h"
#include "policies/forecast.h"
#include "policies/history.h"
#include "policies/idle.h"
#include "policies/panic.h"
#include "policies/schedule.h"
#include "policies/startup.h"
#include "policies/window.h"

struct policy;

struct state_header {
	uint32_t magic, version;
	uint64_t bytes, shape;
	int64_t last_now_ms;   // of the last tick; TIME_NONE
	int64_t last_scale_ms; // in either direction; TIME_NONE
	struct history recommendations, events;
	struct startup startup;
	struct fallback fallback;
	struct idle idle;
	struct forecast forecast;
	struct panic panic;
	struct schedule_cache schedule; // not carried over to another policy
	uint32_t n_signals;
	uint32_t seeded; // a recommendation was recorded once: the first tick does not seed any more
};

struct state_signal {
	struct window window;
	int64_t up_since_ms, down_since_ms; // since when the signal has pushed that way without a break; TIME_NONE
	int64_t failures;                   // ticks in a row without a reading; counted with `fallback` only
};

_Static_assert(sizeof(struct state_header) == 4 + 4 + 2 * 8 + 2 * 8 + 2 * sizeof(struct history) +
                                                      sizeof(struct startup) + sizeof(struct fallback) +
                                                      sizeof(struct idle) + sizeof(struct forecast) +
                                                      sizeof(struct panic) + sizeof(struct schedule_cache) + 8,
               "no padding");
_Static_assert(sizeof(struct startup) == 16 * STARTUP_ORDERS_MAX + 8 * STARTUP_STARTS_MAX + 6 * 4, "no padding");
_Static_assert(sizeof(struct forecast) == 8 + 2 * 4 + 12 * 8, "no padding");
_Static_assert(sizeof(struct window) == 8 + 4 * 4 + 2 * 8 + 3 * 8, "no padding");
_Static_assert(sizeof(struct history) == 8 + 4 * 4, "no padding");
_Static_assert(sizeof(struct history_mark) == 24 && sizeof(struct window_sample) == 32, "no padding");

// The header of a block that decide_state_matches() accepts for this policy.
struct state_header *state_of(const struct policy *policy, void *block);
const struct state_header *state_of_const(const struct policy *policy, const void *block);
struct state_signal *state_signal(struct state_header *s, size_t i);
struct window_sample *state_samples(struct state_header *s, const struct window *w);
double *state_slots(struct state_header *s, const struct forecast *f);
struct history_mark *state_marks(struct state_header *s, const struct history *h);

#endif
