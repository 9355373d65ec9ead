// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/history.h"

#include <assert.h>
#include <string.h>

#include "policies/engine/number.h"

#define HISTORY_ROOM_MIN 64 // ticks may come earlier than the interval
#define HISTORY_GAP_MIN  16 // dropped marks before the others are moved to the front

uint32_t history_marks_needed(int64_t keep_ms, int64_t interval_ms)
{
	int64_t ticks = i64_max(keep_ms, 0) / i64_max(interval_ms, 1);
	if (ticks >= HISTORY_MARKS_MAX - 2)
		return HISTORY_MARKS_MAX;
	return (uint32_t)i64_max(ticks + 2, HISTORY_ROOM_MIN);
}

void history_init(struct history *h, uint64_t marks_offset, uint32_t cap)
{
	*h = (struct history){.marks_offset = marks_offset, .cap = cap};
}

const struct history_mark *history_at(const struct history *h, const struct history_mark *marks, uint32_t i)
{
	assert(i < h->len);
	return &marks[h->start + i];
}

typedef void merge_fn(struct history_mark *into, const struct history_mark *from);

static void merge_recommendations(struct history_mark *into, const struct history_mark *from)
{
	into->lo = i32_min(into->lo, from->lo);
	into->hi = i32_max(into->hi, from->hi);
}

static void merge_events(struct history_mark *into, const struct history_mark *from)
{
	into->lo = i32_from_i64((int64_t)into->lo + from->lo);
	into->hi = i32_from_i64((int64_t)into->hi + from->hi);
}

// Merges the two neighbours that span the least time. Repeated merging loses resolution evenly, and not only at the
// oldest mark.
static void merge_closest(struct history *h, struct history_mark *marks, merge_fn *merge)
{
	struct history_mark *m = &marks[h->start];
	uint32_t best = 0;
	for (uint32_t i = 1; i + 1 < h->len; i++)
		if (i64_sub(m[i + 1].last_ms, m[i].first_ms) < i64_sub(m[best + 1].last_ms, m[best].first_ms))
			best = i;
	merge(&m[best], &m[best + 1]);
	m[best].last_ms = m[best + 1].last_ms;
	memmove(&m[best + 1], &m[best + 2], (h->len - best - 2) * sizeof *m);
	h->len--;
}

static void add(struct history *h, struct history_mark *marks, struct history_mark mark, int64_t keep_ms,
                merge_fn *merge)
{
	assert(h->cap >= 2);
	int64_t cutoff_ms = i64_sub(mark.last_ms, keep_ms);
	while (h->len > 0 && marks[h->start].last_ms <= cutoff_ms) {
		h->start++;
		h->len--;
	}
	if (h->len > 0) {
		struct history_mark *newest = &marks[h->start + h->len - 1];
		if (newest->last_ms >= mark.last_ms) {
			merge(newest, &mark);
			return;
		}
	}
	// Moves the marks to the front at the end of the room, and whenever that is cheap: pages that are never written
	// take no memory.
	if (h->start > 0 && (h->start + h->len == h->cap || h->start >= i64_max(h->len, HISTORY_GAP_MIN))) {
		memmove(marks, &marks[h->start], h->len * sizeof *marks);
		h->start = 0;
	}
	if (h->len == h->cap)
		merge_closest(h, marks, merge);
	marks[h->start + h->len++] = mark;
}

void history_add_recommendation(struct history *h, struct history_mark *marks, int64_t time_ms, int32_t replicas,
                                int64_t keep_ms)
{
	struct history_mark mark = {.first_ms = time_ms, .last_ms = time_ms, .lo = replicas, .hi = replicas};
	if (h->len > 0) {
		// For an equal recommendation only the newest time matters, because all windows end now.
		struct history_mark *newest = &marks[h->start + h->len - 1];
		if (newest->lo == replicas && newest->hi == replicas) {
			newest->last_ms = i64_max(newest->last_ms, time_ms);
			newest->first_ms = newest->last_ms;
			return;
		}
	}
	add(h, marks, mark, keep_ms, merge_recommendations);
}

void history_add_event(struct history *h, struct history_mark *marks, int64_t time_ms, int32_t added, int32_t removed,
                       int64_t keep_ms)
{
	struct history_mark mark = {.first_ms = time_ms, .last_ms = time_ms, .lo = added, .hi = removed};
	add(h, marks, mark, keep_ms, merge_events);
}
