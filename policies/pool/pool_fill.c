// SPDX-License-Identifier: Apache-2.0
#include "policies/pool/pool_fill.h"

#include <math.h>

#include "policies/engine/number.h"
#include "policies/pool/pool_grant.h"
#include "policies/pool/pool_request.h"

#define LEVEL_STEPS 48 // halvings of the level; any number is correct, fewer leave more to the heap

int64_t pool_replica_micro(const struct pool_member *m)
{
	return m->price_micro * m->gpus_per_replica;
}

static int64_t times(int64_t a, int64_t b)
{
	int64_t r;
	return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

bool pool_fits(const struct pool_room *room, const struct pool_member *m, int32_t n)
{
	int64_t micro = times(pool_replica_micro(m), n);
	return (int64_t)n * m->gpus_per_replica <= room->gpus && (micro == 0 || micro <= room->micro);
}

void pool_take(struct pool_room *room, const struct pool_member *m, int32_t n)
{
	room->gpus -= (int64_t)n * m->gpus_per_replica;
	if (room->micro != POOL_NO_BUDGET)
		room->micro = i64_sub(room->micro, times(pool_replica_micro(m), n));
}

// ---- classes: priority, backfill last ----

static int class_compare(const struct pool_member *a, const struct pool_member *b)
{
	if (a->backfill != b->backfill)
		return a->backfill ? 1 : -1;
	return a->priority > b->priority ? -1 : a->priority < b->priority;
}

static bool comes_later(const struct pool_request *q, int32_t a, int32_t b)
{
	int c = class_compare(&q->members[a], &q->members[b]);
	return c ? c > 0 : a > b;
}

static void sift_order(const struct pool_request *q, struct pool_grant *g, size_t i, size_t n)
{
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && comes_later(q, g[child + 1].order, g[child].order))
			child++;
		if (!comes_later(q, g[child].order, g[i].order))
			return;
		int32_t swap = g[i].order;
		g[i].order = g[child].order;
		g[child].order = swap;
	}
}

void pool_order(const struct pool_request *q, struct pool_grant *g)
{
	size_t n = q->n_members;
	bool is_sorted = true;
	for (size_t i = 0; i < n; i++) {
		g[i].order = (int32_t)i;
		is_sorted = is_sorted && (i == 0 || !comes_later(q, (int32_t)i - 1, (int32_t)i));
	}
	if (is_sorted)
		return;
	for (size_t i = n / 2; i-- > 0;)
		sift_order(q, g, i, n);
	for (size_t end = n; end-- > 1;) {
		int32_t swap = g[0].order;
		g[0].order = g[end].order;
		g[end].order = swap;
		sift_order(q, g, 0, end);
	}
}

// ---- one class ----

struct run {
	const struct pool_request *q;
	struct pool_grant *g;
	struct pool_room *room;
	size_t first, end; // range of g[].order
	size_t n_heap;     // g[first .. first + n_heap).heap: members that want more, the poorest at the top
};

static int32_t at(const struct run *r, size_t k)
{
	return r->g[r->first + k].heap;
}
static void put(struct run *r, size_t k, int32_t member)
{
	r->g[r->first + k].heap = member;
}

// Compares the GPUs per unit of weight that two members have.
static int level_compare(const struct run *r, int32_t a, int32_t b)
{
	const struct pool_member *ma = &r->q->members[a], *mb = &r->q->members[b];
	int64_t x = (int64_t)r->g[a].value * ma->gpus_per_replica * mb->weight_milli;
	int64_t y = (int64_t)r->g[b].value * mb->gpus_per_replica * ma->weight_milli;
	return x < y ? -1 : x > y;
}

static bool is_before(const struct run *r, int32_t a, int32_t b)
{
	int c = level_compare(r, a, b);
	return c ? c < 0 : a < b;
}

static void heap_up(struct run *r, size_t i)
{
	int32_t member = at(r, i);
	for (; i > 0 && is_before(r, member, at(r, (i - 1) / 2)); i = (i - 1) / 2)
		put(r, i, at(r, (i - 1) / 2));
	put(r, i, member);
}

static void heap_down(struct run *r, size_t i)
{
	int32_t member = at(r, i);
	for (size_t child; (child = 2 * i + 1) < r->n_heap; i = child) {
		if (child + 1 < r->n_heap && is_before(r, at(r, child + 1), at(r, child)))
			child++;
		if (!is_before(r, at(r, child), member))
			break;
		put(r, i, at(r, child));
	}
	put(r, i, member);
}

// Moves the top to the place behind the heap.
static int32_t heap_pop(struct run *r)
{
	int32_t top = at(r, 0);
	put(r, 0, at(r, --r->n_heap));
	put(r, r->n_heap, top);
	if (r->n_heap > 0)
		heap_down(r, 0);
	return top;
}

// Replicas of a member when every replica is given that starts at or below `level` (GPUs per unit of weight). The
// quotient is rounded, so it is one replica below what the level gives: the heap decides who gets that one.
static int32_t value_at(const struct run *r, int32_t i, double level)
{
	const struct pool_member *m = &r->q->members[i];
	const struct pool_grant *g = &r->g[i];
	double given = floor(level * m->weight_milli / m->gpus_per_replica);
	if (given <= g->value)
		return g->value;
	return given >= g->limit ? g->limit : (int32_t)given;
}

// Whether all replicas that start at or below `level` fit, with one replica more for each member.
static bool level_fits(const struct run *r, double level)
{
	struct pool_room room = *r->room;
	for (size_t k = 0; k < r->n_heap; k++) {
		int32_t i = at(r, k), value = value_at(r, i, level);
		pool_take(&room, &r->q->members[i], i32_min(value + 1, r->g[i].limit) - r->g[i].value);
		if (room.gpus < 0)
			return false;
	}
	return room.micro >= 0 || room.micro == r->room->micro;
}

// Gives what is certain to fit at once, so that the heap decides about the last replicas only.
static void raise_level(struct run *r)
{
	double low = 0, high = 0;
	int32_t heaviest = 1;
	for (size_t k = 0; k < r->n_heap; k++) {
		int32_t i = at(r, k);
		const struct pool_member *m = &r->q->members[i];
		double most = (double)r->g[i].value * m->gpus_per_replica + (double)r->room->gpus;
		high = fmax(high, most / m->weight_milli);
		heaviest = i32_max(heaviest, m->weight_milli);
	}
	if (!level_fits(r, low))
		return;
	// The heap gives the last GPU of each member as fast.
	for (int s = 0; s < LEVEL_STEPS && (high - low) * heaviest > 1; s++) {
		double middle = low + (high - low) / 2;
		if (level_fits(r, middle))
			low = middle;
		else
			high = middle;
	}
	for (size_t k = 0; k < r->n_heap; k++) {
		int32_t i = at(r, k), value = value_at(r, i, low);
		pool_take(r->room, &r->q->members[i], value - r->g[i].value);
		r->g[i].value = value;
	}
}

// Gives one replica to each of the members at the lowest level, as far as they fit. Which of them is first moves with
// the turn. Those that want more return to the heap; one that does not fit now never will, because the room only
// shrinks.
static void serve_lowest(struct run *r)
{
	size_t n = 1, kept = 0;
	int32_t lowest = heap_pop(r);
	while (r->n_heap > 0 && level_compare(r, at(r, 0), lowest) == 0) {
		heap_pop(r);
		n++;
	}
	// The popped members lie behind the heap, the last one first.
	size_t from = r->n_heap;
	for (size_t k = 0; k < n; k++) {
		size_t place = from + n - 1 - (size_t)((k + r->q->turn) % n);
		int32_t i = at(r, place);
		struct pool_grant *g = &r->g[i];
		if (!pool_fits(r->room, &r->q->members[i], 1)) {
			g->limit = g->value;
			continue;
		}
		pool_take(r->room, &r->q->members[i], 1);
		g->value++;
	}
	for (size_t k = 0; k < n; k++) {
		int32_t i = at(r, from + k);
		if (r->g[i].value < r->g[i].limit)
			put(r, from + kept++, i);
	}
	for (size_t k = 0; k < kept; k++) {
		r->n_heap++;
		heap_up(r, r->n_heap - 1);
	}
}

static void fill_class(struct run *r)
{
	struct pool_room room = *r->room;
	for (size_t k = r->first; k < r->end; k++) {
		int32_t i = r->g[k].order;
		const struct pool_member *m = &r->q->members[i];
		if (r->g[i].value >= r->g[i].limit)
			continue;
		pool_take(&room, m, r->g[i].limit - r->g[i].value);
		if (pool_fits(r->room, m, 1))
			put(r, r->n_heap++, i);
	}
	if (room.gpus >= 0 && (room.micro >= 0 || room.micro == r->room->micro)) { // all of it
		for (size_t k = 0; k < r->n_heap; k++)
			r->g[at(r, k)].value = r->g[at(r, k)].limit;
		*r->room = room;
		return;
	}
	raise_level(r);
	size_t n = r->n_heap;
	r->n_heap = 0;
	for (size_t k = 0; k < n; k++)
		if (r->g[at(r, k)].value < r->g[at(r, k)].limit)
			put(r, r->n_heap++, at(r, k));
	for (size_t k = r->n_heap / 2; k-- > 0;)
		heap_down(r, k);
	while (r->n_heap > 0)
		serve_lowest(r);
}

void pool_fill(const struct pool_request *q, struct pool_grant *g, struct pool_room *room)
{
	for (size_t first = 0, end; first < q->n_members; first = end) {
		const struct pool_member *m = &q->members[g[first].order];
		for (end = first + 1; end < q->n_members; end++)
			if (class_compare(m, &q->members[g[end].order]) != 0)
				break;
		struct run r = {q, g, room, first, end, 0};
		fill_class(&r);
	}
}
