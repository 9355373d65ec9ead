// SPDX-License-Identifier: Apache-2.0
// Recommendations and scale events: short lists of stamped marks inside the flat state, oldest first. Exact until a
// list is full of marks that still count; then the two neighbours that lie closest in time become one, so that nothing
// inside a window is lost and the error in time stays about window / room.
#ifndef GPUSCALE_POLICIES_HISTORY_H
#define GPUSCALE_POLICIES_HISTORY_H

#include <stddef.h>
#include <stdint.h>

struct policy;

struct history_mark {
	int64_t first_ms, last_ms; // equal, unless marks were merged
	int32_t lo, hi;            // recommendations: smallest and largest; events: replicas added, removed
};

struct history {
	uint64_t marks_offset; // of the mark array in the state block
	uint32_t cap, start, len;
	uint32_t unused;
};

// Room for the longest stabilization window, and for the longest rate period, at the policy's interval.
uint32_t history_recommendations_needed(const struct policy *policy);
uint32_t history_events_needed(const struct policy *policy);

void history_init(struct history *h, uint64_t marks_offset, uint32_t cap);

// The i-th oldest mark, i < len.
const struct history_mark *history_at(const struct history *h, const struct history_mark *marks, uint32_t i);

// Adds a recommendation; marks not newer than time_ms - keep_ms are dropped first. time_ms before the newest mark
// counts as that mark's.
void history_add_recommendation(struct history *h, struct history_mark *marks, int64_t time_ms, int32_t replicas,
                                int64_t keep_ms);
void history_add_event(struct history *h, struct history_mark *marks, int64_t time_ms, int32_t added, int32_t removed,
                       int64_t keep_ms);

// Longest time a mark can matter: ms.
int64_t history_recommendations_keep_ms(const struct policy *policy);
int64_t history_events_keep_ms(const struct policy *policy);

#endif
