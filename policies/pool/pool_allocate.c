// SPDX-License-Identifier: Apache-2.0
#include "policies/pool/pool_allocate.h"

#include <math.h>

#include "policies/engine/number.h"

// clang-format off
const struct pool_reason_info pool_reasons[] = {
	[POOL_GRANTED]          = {"Granted",         "pool {pool} uses {used} of {gpus} GPUs"},
	[POOL_AT_MIN]           = {"MinReplicas",     "minReplicas takes precedence"},
	[POOL_AT_MAX]           = {"MaxReplicas",     "maxReplicas takes precedence"},
	[POOL_LIMITED]          = {"PoolLimited",     "pool {pool} uses {used} of {gpus} GPUs"},
	[POOL_BUDGET_LIMITED]   = {"BudgetLimited",   "the budget of pool {pool} is used up at {used} of {gpus} GPUs"},
	[POOL_RATIO_LIMITED]    = {"RatioLimited",    "the ratio to another member of pool {pool} allows no other number yet"},
	[POOL_WAITING]          = {"WaitingForGPUs",  "its share is {share}; other members of pool {pool} must scale down first"},
	[POOL_KEPT]             = {"NoMetrics",       "a member without metrics keeps what it has"},
	[POOL_MEMBER_LIMITED]   = {"MemberLimited",   "pool {pool} allows this member at most {most} replicas"},
	[POOL_MINIMUMS_EXCEED]  = {"MinimumsExceed",  "the guaranteed minimums of pool {pool} need {minimums} GPUs, the cap is {gpus}: lower a maxMinReplicas or raise the cap"},
	[POOL_HELD]             = {"PoolHeld",        "pool {pool} is held"},
};
// clang-format on
_Static_assert(sizeof pool_reasons / sizeof pool_reasons[0] == POOL_REASON__COUNT, "one row per reason");

// ---- ratios ----

// A ratio is kept to within one replica of either member, so that one of the two can always move next: with bounds of
// exactly 1:1 neither could leave 2:2. In thousandths, with of and to as whole replicas:
//   min * to - max(min, 1000) < 1000 * of < max * to + max(max, 1000)

static int64_t slack(int64_t ratio_milli)
{
	return i64_max(ratio_milli, 1000);
}

static int32_t limited(int64_t v)
{
	return v < 0 ? 0 : v > POOL_REPLICAS_MAX ? POOL_REPLICAS_MAX : (int32_t)v;
}

// The smallest n with n * step > v.
static int64_t above(int64_t v, int64_t step)
{
	return v < 0 ? 0 : v / step + 1;
}

int32_t pool_pair_of_min(const struct pool_ratio *r, int64_t to)
{
	return limited(above(r->min_milli * to - slack(r->min_milli), 1000));
}

int32_t pool_pair_of_max(const struct pool_ratio *r, int64_t to)
{
	return limited((r->max_milli * to + slack(r->max_milli) - 1) / 1000);
}

int32_t pool_pair_to_min(const struct pool_ratio *r, int64_t of)
{
	return limited(above(1000 * of - slack(r->max_milli), r->max_milli));
}

int32_t pool_pair_to_max(const struct pool_ratio *r, int64_t of)
{
	return r->min_milli == 0 ? POOL_REPLICAS_MAX : limited((1000 * of + slack(r->min_milli) - 1) / r->min_milli);
}

// ---- room: what a pool has left ----

#define LEVEL_STEPS 48 // halvings of the level; any number is correct, fewer leave more to the heap

#define NO_BUDGET INT64_MAX

// The rest of a pool. Either may be negative: then nothing is left. micro is NO_BUDGET without a budget.
struct pool_room {
	int64_t gpus, micro;
};

static bool pool_fits(const struct pool_room *room, const struct pool_member *m, int32_t n)
{
	int64_t micro = i64_mul(pool_replica_micro(m), n);
	return (int64_t)n * m->gpus_per_replica <= room->gpus && (micro == 0 || micro <= room->micro);
}

static void pool_take(struct pool_room *room, const struct pool_member *m, int32_t n)
{
	room->gpus -= (int64_t)n * m->gpus_per_replica;
	if (room->micro != NO_BUDGET)
		room->micro = i64_sub(room->micro, i64_mul(pool_replica_micro(m), n));
}

// ---- classes: priority, backfill last ----

static int class_compare(const struct pool_member *a, const struct pool_member *b)
{
	if (a->backfill != b->backfill)
		return a->backfill ? 1 : -1;
	return a->priority > b->priority ? -1 : a->priority < b->priority;
}

// ---- one class ----

struct run {
	const struct pool_request *q;
	struct pool_grant *g;
	struct pool_room *room;
	size_t first, end; // range of g[].order
	bool by_class;     // the heap sorts by class, not by level
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
	int c = r->by_class ? class_compare(&r->q->members[a], &r->q->members[b]) : level_compare(r, a, b);
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

static void heapify(struct run *r)
{
	for (size_t k = r->n_heap / 2; k-- > 0;)
		heap_down(r, k);
}

// Fills grants[].order with the members in the order in which classes are served.
static void pool_order(const struct pool_request *q, struct pool_grant *g)
{
	struct run r = {.q = q, .g = g, .end = q->n_members, .by_class = true};
	bool is_sorted = true;
	for (size_t i = 0; i < q->n_members; i++) {
		g[i].order = (int32_t)i;
		is_sorted = is_sorted && (i == 0 || is_before(&r, (int32_t)i - 1, (int32_t)i));
		put(&r, r.n_heap++, (int32_t)i);
	}
	if (is_sorted)
		return;
	heapify(&r);
	for (size_t i = 0; i < q->n_members; i++)
		g[i].order = heap_pop(&r);
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
	heapify(r);
	while (r->n_heap > 0)
		serve_lowest(r);
}

// Raises grants[i].value to at most grants[i].limit, by priority and then by weighted max-min fairness, while there is
// room; a limit below the value changes nothing. Needs pool_order().
static void pool_fill(const struct pool_request *q, struct pool_grant *g, struct pool_room *room)
{
	for (size_t first = 0, end; first < q->n_members; first = end) {
		const struct pool_member *m = &q->members[g[first].order];
		for (end = first + 1; end < q->n_members; end++)
			if (class_compare(m, &q->members[g[end].order]) != 0)
				break;
		struct run r = {.q = q, .g = g, .room = room, .first = first, .end = end};
		fill_class(&r);
	}
}

#define RATIO_ROUNDS 64 // each lets one member of a pair grow as far as the other allows

static int32_t wanted(const struct pool_member *m)
{
	return i32_min(i32_max(i32_min(m->asked, m->max), m->min), m->most);
}

// What the member is entitled to ask for. One that is fixed cannot grow, and asks for no more than it has.
static int32_t claimed(const struct pool_member *m)
{
	return m->is_fixed ? i32_min(wanted(m), pool_held(m)) : wanted(m);
}

static struct pool_room whole_pool(const struct pool_request *q)
{
	return (struct pool_room){q->gpus, q->has_budget ? q->budget_micro : NO_BUDGET};
}

// ---- the share: what each member gets once every PATCH has been carried out ----

// Takes replicas from a member that has more than `most`, but none that is guaranteed.
static void lower(const struct pool_request *q, struct pool_grant *g, size_t i, int32_t most, struct pool_room *room)
{
	const struct pool_member *m = &q->members[i];
	int32_t value = i32_max(most, pool_guaranteed(m));
	if (m->is_fixed || value >= g[i].value)
		return;
	pool_take(room, m, value - g[i].value);
	g[i].value = value;
}

static void set_limits(const struct pool_request *q, struct pool_grant *g)
{
	for (size_t i = 0; i < q->n_members; i++) {
		const struct pool_member *m = &q->members[i];
		g[i].limit = m->is_fixed ? g[i].value : i32_max(wanted(m), g[i].value);
	}
}

// Brings every pair into its ratio, and lets all members grow into what that leaves.
static void share_pairs(const struct pool_request *q, struct pool_grant *g, struct pool_room *room)
{
	for (size_t k = 0; k < q->n_ratios; k++) {
		const struct pool_ratio *r = &q->ratios[k];
		lower(q, g, r->of, pool_pair_of_max(r, g[r->to].value), room);
		lower(q, g, r->to, pool_pair_to_max(r, g[r->of].value), room);
	}
	bool grew = q->n_ratios > 0;
	for (int round = 0; round < RATIO_ROUNDS && grew; round++) {
		grew = false;
		set_limits(q, g);
		for (size_t k = 0; k < q->n_ratios; k++) {
			const struct pool_ratio *r = &q->ratios[k];
			struct pool_grant *of = &g[r->of], *to = &g[r->to];
			of->limit = i32_min(of->limit, pool_pair_of_max(r, to->value));
			to->limit = i32_min(to->limit, pool_pair_to_max(r, of->value));
			of->share = of->value; // for now: what it had before this round
			to->share = to->value;
		}
		pool_fill(q, g, room);
		for (size_t k = 0; k < q->n_ratios; k++) {
			const struct pool_grant *of = &g[q->ratios[k].of], *to = &g[q->ratios[k].to];
			grew = grew || of->value > of->share || to->value > to->share;
		}
	}
}

// Gives every member what it is entitled to: its guaranteed minimum, then what it claims, class by class.
static struct pool_room entitle(const struct pool_request *q, struct pool_grant *g)
{
	struct pool_room room = whole_pool(q);
	for (size_t i = 0; i < q->n_members; i++) {
		const struct pool_member *m = &q->members[i];
		g[i].value = 0;
		g[i].limit = i32_min(pool_guaranteed(m), claimed(m));
	}
	pool_fill(q, g, &room);
	for (size_t i = 0; i < q->n_members; i++)
		g[i].limit = claimed(&q->members[i]);
	pool_fill(q, g, &room);
	return room;
}

// The existing replicas of `i` that its ratio requires next to a fixed partner, which does not follow.
static void protect(const struct pool_request *q, struct pool_grant *g, size_t i, size_t partner, int32_t least)
{
	const struct pool_member *m = &q->members[i];
	if (!m->is_fixed && q->members[partner].is_fixed)
		g[i].value = i32_max(g[i].value, i32_min(i32_min(m->current, m->most), least));
}

// A fixed member keeps what it has, also in excess of what it is entitled to, and the others share what that leaves.
// But the excess takes nothing from a member that has no more than it is entitled to: that member keeps what it has,
// and who waits for GPUs waits for those of the fixed member.
static struct pool_room share_beside_fixed(const struct pool_request *q, struct pool_grant *g)
{
	struct pool_room room = whole_pool(q);
	for (size_t i = 0; i < q->n_members; i++) {
		const struct pool_member *m = &q->members[i];
		g[i].share = i32_min(m->current, g[i].value); // for now: what the excess cannot take
		g[i].value = m->is_fixed ? pool_held(m) : 0;
	}
	for (size_t k = 0; k < q->n_ratios; k++) {
		const struct pool_ratio *r = &q->ratios[k];
		protect(q, g, r->of, r->to, pool_pair_of_min(r, g[r->to].value));
		protect(q, g, r->to, r->of, pool_pair_to_min(r, g[r->of].value));
	}
	for (size_t i = 0; i < q->n_members; i++) {
		const struct pool_member *m = &q->members[i];
		pool_take(&room, m, g[i].value);
		g[i].limit = m->is_fixed ? g[i].value : i32_max(pool_guaranteed(m), g[i].value);
	}
	pool_fill(q, g, &room);
	set_limits(q, g);
	pool_fill(q, g, &room);
	for (size_t i = 0; i < q->n_members; i++) {
		int32_t value = i32_max(g[i].value, q->members[i].is_fixed ? 0 : g[i].share);
		pool_take(&room, &q->members[i], value - g[i].value);
		g[i].value = value;
	}
	return room;
}

// Returns what the shares leave.
static struct pool_room share(const struct pool_request *q, struct pool_grant *g)
{
	struct pool_room room = entitle(q, g);
	size_t n_fixed = 0;
	for (size_t i = 0; i < q->n_members; i++)
		n_fixed += q->members[i].is_fixed;
	if (n_fixed > 0)
		room = share_beside_fixed(q, g);
	share_pairs(q, g, &room);
	for (size_t i = 0; i < q->n_members; i++)
		g[i].share = g[i].value;
	return room;
}

// ---- the grant: what each member may be scaled to now ----

// Scale-ups, from GPUs that no member uses.
static void grant(const struct pool_request *q, struct pool_grant *g)
{
	struct pool_room free = whole_pool(q);
	for (size_t i = 0; i < q->n_members; i++) {
		g[i].value = pool_held(&q->members[i]);
		pool_take(&free, &q->members[i], g[i].value);
	}
	for (size_t i = 0; i < q->n_members; i++)
		g[i].limit = i32_min(g[i].share, pool_guaranteed(&q->members[i]));
	pool_fill(q, g, &free);
	for (size_t i = 0; i < q->n_members; i++)
		g[i].limit = g[i].share;
	pool_fill(q, g, &free);
	for (size_t i = 0; i < q->n_members; i++) {
		const struct pool_member *m = &q->members[i];
		g[i].replicas = m->is_fixed ? m->current : i32_min(g[i].share, g[i].value);
	}
}

// Keeps the part of the move from `current` to `to` that stays between `least` and `most`.
static int32_t part_of_move(int32_t current, int32_t to, int32_t least, int32_t most)
{
	if (to > current)
		return i32_max(current, i32_min(to, most));
	return i32_min(current, i32_max(to, least));
}

// Limits the moves of a pair so that the ratio is kept whichever of its PATCHes are carried out: those in flight and
// those that follow from this grant. One of the two can always move; the other follows when that is acknowledged.
static void limit_pair(const struct pool_request *q, struct pool_grant *g, const struct pool_ratio *r)
{
	const struct pool_member *of = &q->members[r->of], *to = &q->members[r->to];
	int32_t *of_grant = &g[r->of].replicas, *to_grant = &g[r->to].replicas;
	*to_grant = part_of_move(to->current, *to_grant, pool_pair_to_min(r, pool_held(of)),
	                         pool_pair_to_max(r, i32_min(of->current, of->pending)));
	int32_t to_most = i32_max(pool_held(to), *to_grant);
	int32_t to_least = i32_min(i32_min(to->current, to->pending), *to_grant);
	*of_grant = part_of_move(of->current, *of_grant, pool_pair_of_min(r, to_most), pool_pair_of_max(r, to_least));
}

// ---- reasons ----

static enum pool_reason share_reason(const struct pool_member *m, const struct pool_grant *g,
                                     const struct pool_room *left)
{
	if (g->share < pool_guaranteed(m))
		return POOL_MINIMUMS_EXCEED;
	bool gpus_fit = m->gpus_per_replica <= left->gpus;
	return gpus_fit && !pool_fits(left, m, 1) ? POOL_BUDGET_LIMITED : POOL_LIMITED;
}

static enum pool_reason reason(const struct pool_request *q, const struct pool_member *m, const struct pool_grant *g,
                               const struct pool_room *left)
{
	bool wants_more = i32_max(i32_min(m->asked, m->max), m->min) > m->most;
	bool has_own_limit = ((int64_t)m->most + 1) * m->gpus_per_replica <= q->gpus; // below that of the pool
	if (m->is_fixed)
		return i32_max(m->current, m->pending) > m->most ? POOL_MEMBER_LIMITED : POOL_KEPT;
	if (g->replicas == m->asked)
		return POOL_GRANTED;
	if (g->replicas != g->value) // what the cap grants
		return POOL_RATIO_LIMITED;
	if (g->replicas == wanted(m) && wants_more && has_own_limit)
		return POOL_MEMBER_LIMITED;
	if (g->replicas == wanted(m) && !wants_more)
		return m->asked < m->min ? POOL_AT_MIN : POOL_AT_MAX;
	if (g->replicas < g->share)
		return POOL_WAITING;
	return share_reason(m, g, left);
}

static void explain_pair(struct pool_grant *g, int32_t most)
{
	if (g->reason == POOL_LIMITED && g->share >= most)
		g->reason = POOL_RATIO_LIMITED;
}

// ---- the whole pool ----

static struct pool_total total_of(const struct pool_request *q, const struct pool_grant *g)
{
	struct pool_total t = {0};
	for (size_t i = 0; i < q->n_members; i++) {
		const struct pool_member *m = &q->members[i];
		int64_t least = pool_guaranteed(m), used = i32_max(pool_held(m), i32_min(g[i].replicas, m->most));
		t.minimum_gpus += least * m->gpus_per_replica;
		t.minimum_micro = i64_add(t.minimum_micro, least * pool_replica_micro(m));
		t.used_gpus += used * m->gpus_per_replica;
		t.used_micro = i64_add(t.used_micro, used * pool_replica_micro(m));
	}
	return t;
}

void pool_allocate(const struct pool_request *q, struct pool_grant *g, struct pool_total *ret_total)
{
	pool_order(q, g);
	struct pool_room left = share(q, g);
	grant(q, g);
	for (size_t i = 0; i < q->n_members; i++)
		g[i].value = g[i].replicas; // what the cap grants
	for (size_t k = 0; k < q->n_ratios; k++)
		limit_pair(q, g, &q->ratios[k]);
	for (size_t i = 0; i < q->n_members; i++) {
		g[i].most = q->members[i].most;
		g[i].reason = reason(q, &q->members[i], &g[i], &left);
	}
	for (size_t k = 0; k < q->n_ratios; k++) {
		const struct pool_ratio *r = &q->ratios[k];
		explain_pair(&g[r->of], pool_pair_of_max(r, g[r->to].share));
		explain_pair(&g[r->to], pool_pair_to_max(r, g[r->of].share));
	}
	*ret_total = total_of(q, g);
}
