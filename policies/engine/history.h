// SPDX-License-Identifier: Apache-2.0
// Recommendations and scale events: short lists of marks with a time, part of the flat state, oldest first. A list is
// exact until it is full of marks that still matter; then the two neighbours closest in time are merged, so that
// nothing inside a window is lost and the error in time is about window / room.
#ifndef GPUSCALE_POLICIES_ENGINE_HISTORY_H
#define GPUSCALE_POLICIES_ENGINE_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#define HISTORY_MARKS_MAX 256

struct history_mark {
	int64_t first_ms, last_ms; // equal, unless marks were merged
	int32_t lo, hi;            // recommendations: smallest and largest; events: replicas added, removed
};

struct history {
	uint64_t marks_offset; // offset of the mark array in the state block
	uint32_t cap, start, len;
	uint32_t unused;
};

// Returns how many marks to make room for, so that marks of the last keep_ms stay separate at one mark per interval.
uint32_t history_marks_needed(int64_t keep_ms, int64_t interval_ms);

void history_init(struct history *h, uint64_t marks_offset, uint32_t cap);

// Returns the i-th oldest mark, i < h->len.
const struct history_mark *history_at(const struct history *h, const struct history_mark *marks, uint32_t i);

// Adds a recommendation, or a scale event, after dropping marks not newer than time_ms - keep_ms. A time_ms before the
// newest mark is treated as the time of that mark.
void history_add_recommendation(struct history *h, struct history_mark *marks, int64_t time_ms, int32_t replicas,
                                int64_t keep_ms);
void history_add_event(struct history *h, struct history_mark *marks, int64_t time_ms, int32_t added, int32_t removed,
                       int64_t keep_ms);

#endif
