// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/behavior.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"

#define HISTORY_ROOM_MIN 64 // ticks may come earlier than the interval
#define HISTORY_GAP_MIN  16 // dropped marks before the others are moved to the front

uint32_t history_marks_needed(int64_t keep_ms, int64_t interval_ms)
{
	int64_t ticks = i64_max(keep_ms, 0) / i64_max(interval_ms, 1);
	if (ticks >= HISTORY_MARKS_MAX - 2)
		return HISTORY_MARKS_MAX;
	return (uint32_t)i64_max(ticks + 2, HISTORY_ROOM_MIN);
}

static struct history_mark *marks_of(const struct history *h)
{
	return (struct history_mark *)((uintptr_t)h + h->marks_offset);
}

void history_init(struct history *h, struct history_mark *marks, uint32_t cap)
{
	*h = (struct history){.marks_offset = (uintptr_t)marks - (uintptr_t)h, .cap = cap};
}

struct history_mark *history_at(const struct history *h, uint32_t i)
{
	assert(i < h->len);
	return &marks_of(h)[h->start + i];
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
static void merge_closest(struct history *h, merge_fn *merge)
{
	struct history_mark *m = history_at(h, 0);
	uint32_t best = 0;
	for (uint32_t i = 1; i + 1 < h->len; i++)
		if (i64_sub(m[i + 1].last_ms, m[i].first_ms) < i64_sub(m[best + 1].last_ms, m[best].first_ms))
			best = i;
	merge(&m[best], &m[best + 1]);
	m[best].last_ms = m[best + 1].last_ms;
	memmove(&m[best + 1], &m[best + 2], (h->len - best - 2) * sizeof *m);
	h->len--;
}

static void add(struct history *h, struct history_mark mark, int64_t keep_ms, merge_fn *merge)
{
	assert(h->cap >= 2);
	struct history_mark *marks = marks_of(h);
	int64_t cutoff_ms = i64_sub(mark.last_ms, keep_ms);
	while (h->len > 0 && marks[h->start].last_ms <= cutoff_ms) {
		h->start++;
		h->len--;
	}
	if (h->len > 0) {
		struct history_mark *newest = history_at(h, h->len - 1);
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
		merge_closest(h, merge);
	marks[h->start + h->len++] = mark;
}

void history_add_recommendation(struct history *h, int64_t time_ms, int32_t replicas, int64_t keep_ms)
{
	struct history_mark mark = {.first_ms = time_ms, .last_ms = time_ms, .lo = replicas, .hi = replicas};
	if (h->len > 0) {
		// For an equal recommendation only the newest time matters, because all windows end now.
		struct history_mark *newest = history_at(h, h->len - 1);
		if (newest->lo == replicas && newest->hi == replicas) {
			newest->last_ms = i64_max(newest->last_ms, time_ms);
			newest->first_ms = newest->last_ms;
			return;
		}
	}
	add(h, mark, keep_ms, merge_recommendations);
}

void history_add_event(struct history *h, int64_t time_ms, int32_t added, int32_t removed, int64_t keep_ms)
{
	struct history_mark mark = {.first_ms = time_ms, .last_ms = time_ms, .lo = added, .hi = removed};
	add(h, mark, keep_ms, merge_events);
}

// ---- the behavior ----

// HPA: pkg/apis/autoscaling/v2/defaults.go. Pinned by test_behavior "defaults are the HPA's".
static const struct policy_rate default_up[] = {
        {.type = RATE_PODS, .value = 4, .period_ms = 15000},
        {.type = RATE_PERCENT, .value = 100, .period_ms = 15000},
};
static const struct policy_rate default_down[] = {
        {.type = RATE_PERCENT, .value = 100, .period_ms = 15000},
};

static const struct policy_rate *rates_of(const struct policy_scaling_rules *rules, int direction, size_t *ret_n)
{
	if (rules->n_rates > 0) {
		*ret_n = rules->n_rates;
		return rules->rates;
	}
	*ret_n =
	        direction > 0 ? sizeof default_up / sizeof default_up[0] : sizeof default_down / sizeof default_down[0];
	return direction > 0 ? default_up : default_down;
}

int64_t behavior_longest_period_ms(const struct policy_scaling_rules *rules, int direction)
{
	size_t n;
	const struct policy_rate *rates = rates_of(rules, direction, &n);
	int64_t longest_ms = 0;
	for (size_t i = 0; i < n; i++)
		longest_ms = i64_max(longest_ms, rates[i].period_ms);
	return longest_ms;
}

int64_t behavior_recommendations_keep_ms(const struct policy *policy)
{
	return i64_max(policy->scale_up.stabilization_window_ms, policy->scale_down.stabilization_window_ms);
}

int64_t behavior_events_keep_ms(const struct policy *policy)
{
	return i64_max(behavior_longest_period_ms(&policy->scale_up, +1),
	               behavior_longest_period_ms(&policy->scale_down, -1));
}

struct stabilized behavior_stabilize(const struct policy *policy, const struct history *h, int64_t now_ms,
                                     int32_t current, int32_t desired)
{
	int64_t up_window_ms = policy->scale_up.stabilization_window_ms;
	int64_t down_window_ms = policy->scale_down.stabilization_window_ms;
	int64_t up_cutoff_ms = i64_sub(now_ms, up_window_ms);
	int64_t down_cutoff_ms = i64_sub(now_ms, down_window_ms);
	int32_t up = desired, down = desired;
	int64_t up_at_ms = now_ms, down_at_ms = now_ms;
	const struct history_mark *end = marks_of(h) + h->start + h->len;
	for (const struct history_mark *m = marks_of(h) + h->start; m < end; m++) {
		// "Smaller or equal" selects the newest of equal marks, which leaves its window last.
		if (m->last_ms > up_cutoff_ms && m->lo <= up) {
			up = m->lo;
			up_at_ms = m->last_ms;
		}
		if (m->last_ms > down_cutoff_ms && m->hi >= down) {
			down = m->hi;
			down_at_ms = m->last_ms;
		}
	}
	struct stabilized r = {.replicas = current};
	if (r.replicas < up)
		r.replicas = up;
	if (r.replicas > down)
		r.replicas = down;
	if (desired >= current) {
		r.extreme = up;
		r.window_ms = up_window_ms;
		r.left_ms = i64_sub(up_at_ms, up_cutoff_ms);
	} else {
		r.extreme = down;
		r.window_ms = down_window_ms;
		r.left_ms = i64_sub(down_at_ms, down_cutoff_ms);
	}
	return r;
}

// Returns the replicas at the start of the period, according to the recorded events.
static int64_t replicas_at(const struct history *events, int64_t cutoff_ms, int32_t current)
{
	int64_t start = current;
	for (uint32_t i = 0; i < events->len; i++) {
		const struct history_mark *m = history_at(events, i);
		if (m->last_ms > cutoff_ms)
			start += (int64_t)m->hi - m->lo;
	}
	return start;
}

static int32_t limit_of(const struct policy_rate *rate, int direction, int64_t start)
{
	if (rate->type == RATE_PODS)
		return i32_from_i64(start + (int64_t)direction * rate->value);
	// The HPA computes in doubles and in this order: 100 replicas and 10 % result in ceil(110.00000000000001) =
	// 111.
	double part = (double)rate->value / 100;
	return direction > 0 ? i32_from_whole(ceil((double)start * (1 + part)))
	                     : i32_from_whole(trunc((double)start * (1 - part)));
}

int32_t behavior_rate_limit(const struct policy_scaling_rules *rules, int direction, const struct history *events,
                            int64_t now_ms, int32_t current)
{
	if (rules->select == SELECT_DISABLED)
		return current;
	size_t n;
	const struct policy_rate *rates = rates_of(rules, direction, &n);
	// Max is the largest change: the largest limit going up, the smallest going down.
	bool largest = (rules->select == SELECT_MIN) == (direction < 0);
	int32_t limit = largest ? INT32_MIN : INT32_MAX;
	for (size_t i = 0; i < n; i++) {
		int64_t start = replicas_at(events, i64_sub(now_ms, rates[i].period_ms), current);
		int32_t l = limit_of(&rates[i], direction, start);
		limit = largest ? i32_max(limit, l) : i32_min(limit, l);
	}
	return direction > 0 ? i32_max(limit, current) : i32_min(limit, current);
}
