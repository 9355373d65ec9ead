// SPDX-License-Identifier: Apache-2.0
#include "policies/history.h"

#include <assert.h>
#include <string.h>

#include "policies/behavior.h"
#include "policies/decide.h"
#include "policies/number.h"
#include "policies/policy.h"

#define HISTORY_ROOM_MIN 64 // ticks may come earlier than the interval
#define HISTORY_GAP_MIN  16 // marks that fell out before the others are moved up

static uint32_t room_for(int64_t keep_ms, int64_t interval_ms)
{
	int64_t ticks = i64_max(keep_ms, 0) / i64_max(interval_ms, 1);
	if (ticks >= DECIDE_HISTORY_MAX - 2)
		return DECIDE_HISTORY_MAX;
	return (uint32_t)i64_max(ticks + 2, HISTORY_ROOM_MIN);
}

int64_t history_recommendations_keep_ms(const struct policy *policy)
{
	return i64_max(policy->scale_up.stabilization_window_ms, policy->scale_down.stabilization_window_ms);
}

int64_t history_events_keep_ms(const struct policy *policy)
{
	return i64_max(behavior_longest_period_ms(&policy->scale_up, +1),
	               behavior_longest_period_ms(&policy->scale_down, -1));
}

uint32_t history_recommendations_needed(const struct policy *policy)
{
	return room_for(history_recommendations_keep_ms(policy), policy->interval_ms);
}

uint32_t history_events_needed(const struct policy *policy)
{
	return room_for(history_events_keep_ms(policy), policy->interval_ms);
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

// Joins the two neighbours that together span the least time: repeated, that spreads the loss of resolution evenly
// instead of piling everything onto the oldest mark.
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
	// Back to the front at the end of the room, and whenever that is cheap: what is never written takes no memory.
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
		// The same answer again: only its newest time matters to a window that ends now.
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
