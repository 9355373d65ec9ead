// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the allocator of a pool, on random pools in a random cluster where PATCHes are refused,
// lost and late. The laws judge the grants and the replicas on the API server from outside the allocator.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policies/pool/pool_allocate.h"
#include "test/laws/prop.h"

#define MEMBERS_MAX 10
#define TURN_TICKS  20
#define PATCH_TICKS 8 // a PATCH is acknowledged or known to be lost after at most as many ticks
#define SYNC_TICKS  4 // without faults, grants become shares within as many ticks
#define RATIO_SYNC  80
#define NO_LIMIT    1000

struct world {
	struct pool_request q;
	struct pool_member members[MEMBERS_MAX];
	struct pool_ratio ratio;
	struct pool_grant grants[MEMBERS_MAX];
	struct pool_total total;
	int32_t actual[MEMBERS_MAX];  // on the API server
	int late_ticks[MEMBERS_MAX];  // > 0: the PATCH in flight is resolved after as many ticks
	bool is_applied[MEMBERS_MAX]; // what becomes of it
	int64_t tick;
};

static void fail_at(const char *law, int64_t done, const struct world *w, size_t i)
{
	const struct pool_member *m = &w->members[i];
	const struct pool_grant *g = &w->grants[i];
	fail_msg("PROP_SEED=%llu: tick %lld: %s: member %zu asked %d, has %d (%d in flight), granted %d, share %d, "
	         "bounds "
	         "%d..%d, %d GPUs each, cap %lld",
	         (unsigned long long)prop_seed(), (long long)done, law, i, m->asked, m->current, m->pending,
	         g->replicas, g->share, m->min, m->max, m->gpus_per_replica, (long long)w->q.gpus);
}

// ---- a random pool ----

static int64_t held_gpus(const struct world *w)
{
	int64_t n = 0;
	for (size_t i = 0; i < w->q.n_members; i++)
		n += (int64_t)pool_held(&w->members[i]) * w->members[i].gpus_per_replica;
	return n;
}

static int64_t held_micro(const struct world *w)
{
	int64_t n = 0;
	for (size_t i = 0; i < w->q.n_members; i++)
		n += pool_held(&w->members[i]) * w->members[i].price_micro * w->members[i].gpus_per_replica;
	return n;
}

static void random_member(struct prop_random *r, struct pool_member *m)
{
	static const int32_t shapes[] = {1, 1, 1, 2, 4, 8};
	*m = (struct pool_member){.min = prop_chance(r, 50) ? prop_up_to(r, 2) : 0,
	                          .gpus_per_replica = shapes[prop_up_to(r, 5)],
	                          .priority = prop_up_to(r, 2),
	                          .weight_milli = prop_chance(r, 60) ? 1000 : 1 + prop_up_to(r, 4000),
	                          .backfill = prop_chance(r, 15)};
	m->max = m->min + 1 + prop_up_to(r, 20);
	m->guaranteed = prop_chance(r, 70) ? m->min : prop_up_to(r, m->min);
	m->most = prop_chance(r, 80) ? NO_LIMIT : prop_up_to(r, 20);
	m->asked = prop_up_to(r, 24);
	m->current = m->pending = m->min < m->most ? m->min : m->most;
}

// A cap that the minimums fit into, at times exactly.
static void random_world(struct prop_random *r, struct world *w)
{
	memset(w, 0, sizeof *w);
	w->q.members = w->members;
	w->q.ratios = &w->ratio;
	w->q.n_members = 1 + (size_t)prop_up_to(r, MEMBERS_MAX - 1);
	bool is_priced = prop_chance(r, 30);
	for (size_t i = 0; i < w->q.n_members; i++) {
		random_member(r, &w->members[i]);
		if (is_priced)
			w->members[i].price_micro = 500000 * prop_up_to(r, 6);
		w->actual[i] = w->members[i].current;
	}
	w->q.gpus = held_gpus(w) + prop_up_to(r, prop_chance(r, 50) ? 8 : 60);
	w->q.has_budget = is_priced;
	w->q.budget_micro = held_micro(w) + (int64_t)500000 * prop_up_to(r, 60);
	w->q.turn = (uint64_t)prop_up_to(r, 1000);
}

// ---- the cluster ----

static void change_wishes(struct prop_random *r, struct world *w)
{
	for (size_t i = 0; i < w->q.n_members; i++) {
		struct pool_member *m = &w->members[i];
		if (prop_chance(r, 20))
			m->asked = prop_up_to(r, 24);
		if (prop_chance(r, 4))
			m->is_fixed = !m->is_fixed;
	}
}

// PATCHes in flight arrive, or turn out to be lost.
static void resolve_late(struct world *w, void (*check)(const struct world *w, int64_t done), int64_t done)
{
	for (size_t i = 0; i < w->q.n_members; i++) {
		struct pool_member *m = &w->members[i];
		if (w->late_ticks[i] == 0)
			continue;
		if (w->is_applied[i] && w->late_ticks[i] == PATCH_TICKS / 2) {
			w->actual[i] = m->pending; // carried out, but not acknowledged yet
			check(w, done);
		}
		if (--w->late_ticks[i] > 0)
			continue;
		if (w->is_applied[i])
			w->actual[i] = m->pending;
		check(w, done);
		m->current = m->pending = w->actual[i];
	}
}

// Sends the PATCHes of a tick in an order that differs each time, each with a fate of its own. A fixed member and one
// with a PATCH in flight get none.
static void send(struct prop_random *r, struct world *w, int percent_faults,
                 void (*check)(const struct world *w, int64_t done), int64_t done)
{
	size_t n = w->q.n_members, first = (size_t)prop_up_to(r, (int32_t)n - 1);
	for (size_t k = 0; k < n; k++) {
		size_t i = (first + k) % n;
		struct pool_member *m = &w->members[i];
		if (m->is_fixed || w->late_ticks[i] > 0 || w->grants[i].replicas == m->current)
			continue;
		if (!prop_chance(r, percent_faults)) {
			w->actual[i] = m->current = m->pending = w->grants[i].replicas;
		} else if (prop_chance(r, 60)) { // no answer: refused ones change nothing
			m->pending = w->grants[i].replicas;
			w->late_ticks[i] = 1 + prop_up_to(r, PATCH_TICKS - 1);
			w->is_applied[i] = prop_chance(r, 50);
		}
		check(w, done);
	}
}

static void tick(struct prop_random *r, struct world *w, int percent_faults,
                 void (*check)(const struct world *w, int64_t done), int64_t done)
{
	resolve_late(w, check, done);
	pool_allocate(&w->q, w->grants, &w->total);
	send(r, w, percent_faults, check, done);
	if (++w->tick % TURN_TICKS == 0)
		w->q.turn++;
}

static void check_nothing(const struct world *w, int64_t done) {}

// ---- the cap ----

static void check_cap(const struct world *w, int64_t done)
{
	int64_t gpus = 0, micro = 0;
	for (size_t i = 0; i < w->q.n_members; i++) {
		int64_t n = (int64_t)w->actual[i] * w->members[i].gpus_per_replica;
		gpus += n;
		micro += n * w->members[i].price_micro;
	}
	if (gpus > w->q.gpus)
		fail_at("the cap holds at every instant", done, w, 0);
	if (w->q.has_budget && micro > w->q.budget_micro)
		fail_at("the budget holds at every instant", done, w, 0);
}

static void cap_holds_at_every_instant(void **state)
{
	struct prop_random r = {prop_seed() + 101};
	struct world w;
	int64_t n = prop_ticks(), full = 0, waiting = 0;
	for (int64_t done = 0; done < n;) {
		random_world(&r, &w);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			change_wishes(&r, &w);
			tick(&r, &w, 40, check_cap, done);
			full += w.total.used_gpus == w.q.gpus;
			for (size_t k = 0; k < w.q.n_members; k++)
				waiting += w.grants[k].reason == POOL_WAITING;
		}
	}
	assert_true(full > n / 20 && waiting > n / 20); // the law was put to the test
}

static void used_counts_the_largest_values(void **state)
{
	struct prop_random r = {prop_seed() + 110};
	struct world w;
	int64_t n = prop_ticks();
	for (int64_t done = 0; done < n;) {
		random_world(&r, &w);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			change_wishes(&r, &w);
			resolve_late(&w, check_nothing, done);
			pool_allocate(&w.q, w.grants, &w.total);
			int64_t gpus = 0, micro = 0;
			for (size_t k = 0; k < w.q.n_members; k++) {
				const struct pool_member *m = &w.members[k];
				int64_t most = m->current > m->pending ? m->current : m->pending;
				most = most > w.grants[k].replicas ? most : w.grants[k].replicas;
				gpus += most * m->gpus_per_replica;
				micro += most * m->gpus_per_replica * m->price_micro;
			}
			if (gpus != w.total.used_gpus || micro != w.total.used_micro)
				fail_at("what is used counts the largest values", done, &w, 0);
			if (gpus > w.q.gpus || (w.q.has_budget && micro > w.q.budget_micro))
				fail_at("what is used is within the cap", done, &w, 0);
			send(&r, &w, 40, check_nothing, done);
		}
	}
}

// The cap was lowered, or members were scaled by hand: nothing grows until the pool is within it again, and it gets
// there.
static void pool_above_its_cap_only_shrinks(void **state)
{
	struct prop_random r = {prop_seed() + 102};
	struct world w;
	int64_t n = prop_ticks(), above = 0;
	for (int64_t done = 0; done < n;) {
		random_world(&r, &w);
		int64_t minimums = held_gpus(&w);
		for (size_t k = 0; k < w.q.n_members; k++) {
			struct pool_member *m = &w.members[k];
			w.actual[k] = m->current = m->pending = prop_up_to(&r, 30);
		}
		for (int i = 0; i < PROP_TICKS_A_TRACE / 10; i++, done++) {
			resolve_late(&w, check_nothing, done);
			pool_allocate(&w.q, w.grants, &w.total);
			bool is_above = held_gpus(&w) > w.q.gpus;
			above += is_above;
			for (size_t k = 0; is_above && k < w.q.n_members; k++)
				if (w.grants[k].replicas > pool_held(&w.members[k]))
					fail_at("a pool above its cap does not grow", done, &w, k);
			send(&r, &w, i < 10 ? 40 : 0, check_nothing, done);
		}
		if (minimums <= w.q.gpus && held_gpus(&w) > w.q.gpus)
			fail_at("a pool above its cap returns below it", done, &w, 0);
	}
	assert_true(above > n / 20); // the law was put to the test
}

// ---- who gets what: judged by the shares ----

static int32_t wish(const struct pool_member *m)
{
	int32_t v = m->asked > m->max ? m->max : m->asked;
	v = v < m->min ? m->min : v;
	return v < m->most ? v : m->most;
}

static bool is_short(const struct world *w, size_t i)
{
	return !w->members[i].is_fixed && w->grants[i].share < wish(&w->members[i]);
}

static int64_t replica_micro(const struct pool_member *m)
{
	return m->price_micro * m->gpus_per_replica;
}

struct amount {
	int64_t gpus, micro;
};

static void amount_add(struct amount *a, const struct pool_member *m, int64_t n)
{
	a->gpus += n * m->gpus_per_replica;
	a->micro += n * replica_micro(m);
}

static struct amount unused(const struct world *w)
{
	struct amount a = {w->q.gpus, w->q.has_budget ? w->q.budget_micro : INT64_MAX / 2};
	for (size_t i = 0; i < w->q.n_members; i++)
		amount_add(&a, &w->members[i], -(int64_t)w->grants[i].share);
	return a;
}

static bool could_use(const struct amount *a, const struct pool_member *m)
{
	return a->gpus >= m->gpus_per_replica && (m->price_micro == 0 || a->micro >= replica_micro(m));
}

static int64_t excess(const struct world *w, size_t i)
{
	int64_t n = (int64_t)w->grants[i].share - pool_guaranteed(&w->members[i]);
	return w->members[i].is_fixed || n < 0 ? 0 : n;
}

static bool is_lower(const struct pool_member *m, const struct pool_member *than)
{
	if (m->backfill != than->backfill)
		return m->backfill;
	return m->priority < than->priority;
}

// What the members of the class of `i` got at a higher level than `i` has now.
static void add_richer(const struct world *w, size_t i, struct amount *a)
{
	const struct pool_member *poor = &w->members[i];
	for (size_t k = 0; k < w->q.n_members; k++) {
		const struct pool_member *m = &w->members[k];
		if (k == i || m->is_fixed || is_lower(m, poor) || is_lower(poor, m))
			continue;
		for (int32_t v = w->grants[k].share; v > pool_guaranteed(m); v--) { // the v-th replica started at v - 1
			int64_t richer = (int64_t)(v - 1) * m->gpus_per_replica * poor->weight_milli;
			int64_t level = (int64_t)w->grants[i].share * poor->gpus_per_replica * m->weight_milli;
			if (richer > level)
				amount_add(a, m, 1);
		}
	}
}

// What each member would get if the fixed ones could be moved, and asked for no more than they have.
static void entitle(const struct world *w, struct world *ret)
{
	*ret = *w;
	ret->q.members = ret->members;
	ret->q.ratios = &ret->ratio;
	for (size_t i = 0; i < w->q.n_members; i++) {
		struct pool_member *m = &ret->members[i];
		int32_t held = pool_held(m), wanted = wish(m);
		if (!m->is_fixed)
			continue;
		m->is_fixed = false;
		m->asked = m->max = held < wanted ? held : wanted;
		m->min = m->min < m->max ? m->min : m->max;
	}
	pool_allocate(&ret->q, ret->grants, &ret->total);
}

// Whether a fixed member has more than it is entitled to: then the others are short of it.
static bool has_excess(const struct world *w, const struct world *entitled)
{
	for (size_t i = 0; i < w->q.n_members; i++)
		if (w->members[i].is_fixed && pool_held(&w->members[i]) > entitled->grants[i].share)
			return true;
	return false;
}

static void check_order(const struct world *w, int64_t done, size_t i)
{
	const struct pool_member *m = &w->members[i];
	struct amount a = unused(w);
	for (size_t k = 0; k < w->q.n_members; k++)
		if (m->backfill < w->members[k].backfill)
			amount_add(&a, &w->members[k], excess(w, k));
	if (could_use(&a, m))
		fail_at("backfill members yield first", done, w, i);
	for (size_t k = 0; k < w->q.n_members; k++)
		if (is_lower(&w->members[k], m) && m->backfill == w->members[k].backfill)
			amount_add(&a, &w->members[k], excess(w, k));
	if (could_use(&a, m))
		fail_at("priority comes before weight", done, w, i);
	add_richer(w, i, &a);
	if (could_use(&a, m))
		fail_at("equal priority shares by weight", done, w, i);
}

static void check_shares(const struct world *w, int64_t done)
{
	struct world entitled;
	entitle(w, &entitled);
	bool is_disturbed = has_excess(w, &entitled);
	for (size_t i = 0; i < w->q.n_members; i++) {
		const struct pool_member *m = &w->members[i];
		struct amount a = unused(w);
		if (m->is_fixed && w->grants[i].replicas != m->current)
			fail_at("a member without metrics keeps what it has", done, w, i);
		if (!m->is_fixed && w->grants[i].share > wish(m))
			fail_at("no member gets more than it asks for", done, w, i);
		if (!is_short(w, i))
			continue;
		if (could_use(&a, m))
			fail_at("no GPU stays unused while a member could use it", done, w, i);
		if (!is_disturbed)
			check_order(w, done, i);
		for (size_t k = 0; k < w->q.n_members && w->grants[i].share < pool_guaranteed(m); k++)
			amount_add(&a, &w->members[k], excess(w, k));
		if (w->grants[i].share < pool_guaranteed(m) && could_use(&a, m))
			fail_at("the guaranteed minimums come first", done, w, i);
	}
}

static void shares_follow_the_order(void **state)
{
	struct prop_random r = {prop_seed() + 104};
	struct world w;
	int64_t n = prop_ticks(), short_ones = 0, backfills = 0;
	for (int64_t done = 0; done < n;) {
		random_world(&r, &w);
		for (size_t k = 0; k < w.q.n_members; k++)
			if (prop_chance(&r, 40)) // new
				w.actual[k] = w.members[k].current = w.members[k].pending = 0;
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			change_wishes(&r, &w);
			resolve_late(&w, check_nothing, done);
			pool_allocate(&w.q, w.grants, &w.total);
			check_shares(&w, done);
			for (size_t k = 0; k < w.q.n_members; k++) {
				short_ones += is_short(&w, k);
				backfills += is_short(&w, k) && w.members[k].backfill;
			}
			send(&r, &w, 40, check_nothing, done);
			w.q.turn += prop_chance(&r, 10);
		}
	}
	assert_true(short_ones > n / 2 && backfills > n / 50); // the law was put to the test
}

// The guaranteed minimums need more than there is: they are served by priority, and nothing is held.
static void minimums_above_the_cap_follow_the_order(void **state)
{
	struct prop_random r = {prop_seed() + 103};
	struct world w;
	int64_t n = prop_ticks(), short_ones = 0;
	for (int64_t done = 0; done < n; done++) {
		random_world(&r, &w);
		w.q.has_budget = false;
		int64_t minimums = held_gpus(&w);
		if (minimums == 0)
			continue;
		w.q.gpus = prop_up_to(&r, (int32_t)minimums - 1);
		for (size_t k = 0; k < w.q.n_members; k++)
			w.actual[k] = w.members[k].current = w.members[k].pending = prop_up_to(&r, 10);
		pool_allocate(&w.q, w.grants, &w.total);
		check_shares(&w, done);
		for (size_t i = 0; i < w.q.n_members; i++) {
			const struct pool_member *m = &w.members[i];
			struct amount a = unused(&w);
			if (w.grants[i].share >= pool_guaranteed(m))
				continue;
			short_ones++;
			for (size_t k = 0; k < w.q.n_members; k++)
				if (is_lower(&w.members[k], m))
					amount_add(&a, &w.members[k], w.grants[k].share);
			if (could_use(&a, m))
				fail_at("guaranteed minimums are served by priority", done, &w, i);
		}
	}
	assert_true(short_ones > n / 20); // the law was put to the test
}

// ---- what one member can do to the others ----

// A pool whose replicas all have the same size and price: only then is "more" for one member never "less" for another
// for want of a gap of the right size.
static void random_equal_world(struct prop_random *r, struct world *w)
{
	static const int32_t shapes[] = {1, 2, 8};
	random_world(r, w);
	int32_t shape = shapes[prop_up_to(r, 2)];
	bool is_priced = prop_chance(r, 30);
	w->q.turn = prop_chance(r, 50) ? 0 : w->q.turn;
	w->q.has_budget = is_priced;
	w->q.budget_micro = (int64_t)shape * 500000 * prop_up_to(r, 100);
	w->q.gpus = (int64_t)shape * prop_up_to(r, 60);
	for (size_t k = 0; k < w->q.n_members; k++) {
		struct pool_member *m = &w->members[k];
		m->gpus_per_replica = shape;
		m->price_micro = is_priced ? 500000 : 0;
		m->current = m->pending = prop_up_to(r, 12);
		if (prop_chance(r, 20))
			m->pending = prop_up_to(r, 12);
		m->is_fixed = prop_chance(r, 20);
	}
}

// Whatever a tenant can set: everything but what the entry of the pool states.
static void random_claims(struct prop_random *r, struct pool_member *m)
{
	int32_t top = prop_chance(r, 50) ? 30 : POOL_REPLICAS_MAX;
	m->asked = prop_up_to(r, top);
	m->min = prop_up_to(r, top);
	m->max = m->min + prop_up_to(r, POOL_REPLICAS_MAX - m->min);
	m->current = prop_up_to(r, top);
	m->pending = prop_chance(r, 50) ? m->current : prop_up_to(r, top);
	m->is_fixed = prop_chance(r, 50);
}

// With another turn, the members that are equal to each other may get the last replica in another order.
static int32_t tolerance(const struct world *w)
{
	return w->q.turn != 0;
}

// Of what a member has, the part that it is granted.
static int32_t kept(const struct pool_grant *g, const struct pool_member *m)
{
	return g->replicas < m->current ? g->replicas : m->current;
}

// What a member asks for, has or claims never costs the others more than if its most replicas were taken out of the
// pool.
static void member_costs_the_others_at_most_its_most(void **state)
{
	struct prop_random r = {prop_seed() + 111};
	struct world w, without;
	int64_t n = prop_ticks(), limited = 0;
	for (int64_t done = 0; done < n; done++) {
		random_equal_world(&r, &w);
		size_t x = (size_t)prop_up_to(&r, (int32_t)w.q.n_members - 1);
		struct pool_member *m = &w.members[x];
		m->most = prop_up_to(&r, 10);
		random_claims(&r, m);
		without = w;
		without.q.members = without.members;
		without.q.gpus -= (int64_t)m->most * m->gpus_per_replica;
		without.q.gpus = without.q.gpus > 0 ? without.q.gpus : 0;
		without.q.budget_micro -= m->most * replica_micro(m);
		without.q.budget_micro = without.q.budget_micro > 0 ? without.q.budget_micro : 0;
		without.q.n_members--;
		memmove(&without.members[x], &without.members[x + 1], (without.q.n_members - x) * sizeof *m);
		pool_allocate(&w.q, w.grants, &w.total);
		pool_allocate(&without.q, without.grants, &without.total);
		for (size_t i = 0; i < w.q.n_members; i++) {
			if (i == x)
				continue;
			const struct pool_grant *g = &without.grants[i > x ? i - 1 : i];
			limited += g->replicas < wish(&w.members[i]);
			if (w.grants[i].share < g->share - tolerance(&w) ||
			    w.grants[i].replicas < kept(g, &w.members[i]) - tolerance(&w))
				fail_at("a member costs the others at most its most replicas", done, &w, i);
		}
		if (!m->is_fixed && w.grants[x].replicas > m->most)
			fail_at("a member is granted at most its most replicas", done, &w, x);
	}
	assert_true(limited > n / 20); // the law was put to the test
}

// The part of a minimum that is not guaranteed is a request like any other.
static void minimum_alone_takes_nothing(void **state)
{
	struct prop_random r = {prop_seed() + 112};
	struct world w, asking;
	int64_t n = prop_ticks(), raised = 0;
	for (int64_t done = 0; done < n; done++) {
		random_world(&r, &w);
		for (size_t k = 0; k < w.q.n_members; k++) {
			w.members[k].current = w.members[k].pending = prop_up_to(&r, 12);
			w.members[k].is_fixed = prop_chance(&r, 20);
		}
		struct pool_member *m = &w.members[prop_up_to(&r, (int32_t)w.q.n_members - 1)];
		m->guaranteed = 0;
		m->min = prop_up_to(&r, 30);
		m->max = m->min + prop_up_to(&r, 10);
		asking = w;
		asking.q.members = asking.members;
		struct pool_member *asks = &asking.members[m - w.members];
		asks->asked = wish(m);
		asks->min = 0;
		raised += m->min > m->asked;
		pool_allocate(&w.q, w.grants, &w.total);
		pool_allocate(&asking.q, asking.grants, &asking.total);
		for (size_t i = 0; i < w.q.n_members; i++)
			if (w.grants[i].share != asking.grants[i].share)
				fail_at("a minimum alone takes nothing", done, &w, i);
	}
	assert_true(raised > n / 20); // the law was put to the test
}

// A member that can no longer be moved takes nothing from the others, as long as their guaranteed minimums are met.
static void fixed_member_takes_nothing(void **state)
{
	struct prop_random r = {prop_seed() + 113};
	struct world w, fixed;
	int64_t n = prop_ticks(), excess_ones = 0;
	for (int64_t done = 0; done < n; done++) {
		random_equal_world(&r, &w);
		size_t x = (size_t)prop_up_to(&r, (int32_t)w.q.n_members - 1);
		for (size_t k = 0; k < w.q.n_members; k++)
			if (w.members[k].guaranteed > w.members[k].current)
				w.members[k].guaranteed = w.members[k].current;
		w.members[x].is_fixed = false;
		fixed = w;
		fixed.q.members = fixed.members;
		fixed.members[x].is_fixed = true;
		pool_allocate(&w.q, w.grants, &w.total);
		pool_allocate(&fixed.q, fixed.grants, &fixed.total);
		excess_ones += w.grants[x].share < pool_held(&w.members[x]);
		for (size_t i = 0; i < w.q.n_members; i++)
			if (i != x && fixed.grants[i].replicas < kept(&w.grants[i], &w.members[i]) - tolerance(&w))
				fail_at("a member that becomes fixed takes nothing from the others", done, &fixed, i);
	}
	assert_true(excess_ones > n / 20); // the law was put to the test
}

// While a member waits for GPUs of its share, the members that have more than theirs are scaled down in the same tick.
static void surplus_is_returned_at_once(void **state)
{
	struct prop_random r = {prop_seed() + 105};
	struct world w;
	int64_t n = prop_ticks(), waiting = 0;
	for (int64_t done = 0; done < n;) {
		random_world(&r, &w);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			change_wishes(&r, &w);
			resolve_late(&w, check_nothing, done);
			pool_allocate(&w.q, w.grants, &w.total);
			bool is_waiting = false;
			for (size_t k = 0; k < w.q.n_members; k++)
				is_waiting = is_waiting || w.grants[k].reason == POOL_WAITING;
			waiting += is_waiting;
			for (size_t k = 0; k < w.q.n_members; k++)
				if (!w.members[k].is_fixed && w.grants[k].replicas > w.grants[k].share)
					fail_at("what is above the share is returned at once", done, &w, k);
			send(&r, &w, 40, check_nothing, done);
			w.q.turn += prop_chance(&r, 10);
		}
	}
	assert_true(waiting > n / 50); // the law was put to the test
}

// ---- over time ----

// Every PATCH is carried out and no member asks for anything else: the grants become the shares.
static void grants_become_the_shares(void **state)
{
	struct prop_random r = {prop_seed() + 106};
	struct world w;
	int64_t n = prop_ticks();
	for (int64_t done = 0; done < n;) {
		random_world(&r, &w);
		for (int i = 0; i < PROP_TICKS_A_TRACE / 10; i++, done++) {
			change_wishes(&r, &w);
			tick(&r, &w, 30, check_nothing, done);
		}
		for (int i = 0; i < PATCH_TICKS + SYNC_TICKS; i++, done++) {
			resolve_late(&w, check_nothing, done);
			pool_allocate(&w.q, w.grants, &w.total);
			send(&r, &w, 0, check_nothing, done);
		}
		pool_allocate(&w.q, w.grants, &w.total);
		struct amount a = unused(&w);
		if (a.gpus < 0 || a.micro < 0)
			continue; // above its cap until a fixed member yields
		for (size_t k = 0; k < w.q.n_members; k++)
			if (w.members[k].is_fixed ? w.grants[k].replicas != w.members[k].current
			                          : w.grants[k].replicas != w.grants[k].share ||
			                                    w.members[k].current != w.grants[k].share)
				fail_at("the grants become the shares", done, &w, k);
	}
}

// Members that differ in nothing want more than there is: within as many turns as there are members each is served, and
// none gets two replicas more than another.
static void equals_take_turns(void **state)
{
	struct prop_random r = {prop_seed() + 107};
	struct world w;
	int64_t n = prop_ticks(), scarce = 0;
	for (int64_t done = 0; done < n;) {
		random_world(&r, &w);
		w.q.has_budget = false;
		struct pool_member one = w.members[0];
		one.min = one.current = one.pending = 0;
		one.max = one.asked = 20;
		one.most = NO_LIMIT;
		one.is_fixed = false;
		w.q.n_members = 2 + (size_t)prop_up_to(&r, MEMBERS_MAX - 2);
		for (size_t k = 0; k < w.q.n_members; k++) {
			w.members[k] = one;
			w.actual[k] = 0;
		}
		w.q.gpus = (int64_t)one.gpus_per_replica * (1 + prop_up_to(&r, 19));
		scarce += w.q.gpus < (int64_t)w.q.n_members * one.gpus_per_replica;
		int32_t served[MEMBERS_MAX] = {0};
		int ticks = (int)w.q.n_members * TURN_TICKS;
		for (int i = 0; i < ticks; i++, done++) {
			tick(&r, &w, 0, check_cap, done);
			int32_t fewest = w.grants[0].share, most = fewest;
			for (size_t k = 0; k < w.q.n_members; k++) {
				served[k] += w.members[k].current > 0;
				fewest = w.grants[k].share < fewest ? w.grants[k].share : fewest;
				most = w.grants[k].share > most ? w.grants[k].share : most;
			}
			if (most > fewest + 1)
				fail_at("equals get equal shares", done, &w, 0);
		}
		for (size_t k = 0; k < w.q.n_members; k++)
			if (served[k] < TURN_TICKS / 2)
				fail_at("no member waits for ever", done, &w, k);
	}
	assert_true(scarce > 0);
}

// ---- ratios ----

// 1000 * of lies strictly between these two.
static bool pair_holds(const struct world *w)
{
	const struct pool_ratio *p = &w->ratio;
	int64_t of = w->actual[p->of], to = w->actual[p->to];
	int64_t low_slack = p->min_milli > 1000 ? p->min_milli : 1000;
	int64_t high_slack = p->max_milli > 1000 ? p->max_milli : 1000;
	return 1000 * of > p->min_milli * to - low_slack && 1000 * of < p->max_milli * to + high_slack;
}

static void check_pair(const struct world *w, int64_t done)
{
	check_cap(w, done);
	if (!pair_holds(w))
		fail_at("the ratio stays in its bounds", done, w, w->ratio.of);
}

static bool random_pair(struct prop_random *r, struct world *w)
{
	random_world(r, w);
	if (w->q.n_members < 2)
		return false;
	w->q.n_ratios = 1;
	w->ratio = (struct pool_ratio){0, 1, prop_up_to(r, 2000), 0};
	w->ratio.max_milli = w->ratio.min_milli + 1 + prop_up_to(r, prop_chance(r, 50) ? 200 : 3000);
	for (size_t k = 0; k < 2; k++) {
		w->members[k].max = 24;
		w->members[k].min = 0;
		w->actual[k] = w->members[k].current = w->members[k].pending = 0;
	}
	return true;
}

static void ratio_stays_in_its_bounds(void **state)
{
	struct prop_random r = {prop_seed() + 108};
	struct world w;
	int64_t n = prop_ticks(), moved = 0, limited = 0;
	for (int64_t done = 0; done < n;) {
		if (!random_pair(&r, &w))
			continue;
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			change_wishes(&r, &w);
			int32_t before = w.actual[0];
			tick(&r, &w, 40, check_pair, done);
			moved += w.actual[0] != before;
			limited += w.grants[0].reason == POOL_RATIO_LIMITED;
			const struct pool_member *m = &w.members[0];
			if (!m->is_fixed && !w.members[1].is_fixed && w.grants[0].share > wish(m))
				fail_at("no member gets more than it asks for", done, &w, 0);
		}
	}
	assert_true(moved > n / 50 && limited > n / 50); // the law was put to the test
}

// A pair is never stuck: one of the two can always move.
static void pair_reaches_its_shares(void **state)
{
	struct prop_random r = {prop_seed() + 109};
	struct world w;
	int64_t n = prop_ticks();
	for (int64_t done = 0; done < n;) {
		if (!random_pair(&r, &w))
			continue;
		for (int i = 0; i < 2 * RATIO_SYNC; i++, done++) {
			if (i < RATIO_SYNC)
				change_wishes(&r, &w);
			resolve_late(&w, check_pair, done);
			pool_allocate(&w.q, w.grants, &w.total);
			send(&r, &w, i < RATIO_SYNC ? 30 : 0, check_pair, done);
		}
		pool_allocate(&w.q, w.grants, &w.total);
		struct amount a = unused(&w);
		if (a.gpus < 0 || a.micro < 0)
			continue; // above its cap until a fixed member yields
		for (size_t k = 0; k < w.q.n_members; k++) {
			if (w.members[k].is_fixed)
				continue;
			if (w.grants[k].replicas != w.grants[k].share || w.members[k].current != w.grants[k].share)
				fail_at("a pair reaches its shares", done, &w, k);
			if (k > 1 && is_short(&w, k) && could_use(&a, &w.members[k]))
				fail_at("no GPU stays unused beside a pair", done, &w, k);
			if (k > 1 || !is_short(&w, k) || !could_use(&a, &w.members[k]))
				continue;
			w.actual[k]++;
			bool is_allowed = pair_holds(&w);
			w.actual[k]--;
			if (is_allowed)
				fail_at("no GPU stays unused that the pair may use", done, &w, k);
		}
	}
}

// Roles with a guaranteed minimum: once each has a replica, it keeps one at every instant, whatever the others ask for
// and whatever becomes of the PATCHes; and without faults, each gets one.
static void check_role(const struct world *w, int64_t done)
{
	check_pair(w, done);
	for (size_t k = 0; k < 2; k++)
		if (w->actual[k] < w->members[k].current && w->actual[k] < 1)
			fail_at("no role loses its last replica", done, w, k);
}

static void no_role_of_a_pair_starves(void **state)
{
	struct prop_random r = {prop_seed() + 110};
	struct world w;
	int64_t n = prop_ticks(), scarce = 0;
	for (int64_t done = 0; done < n;) {
		if (!random_pair(&r, &w))
			continue;
		w.q.has_budget = false;
		for (size_t k = 0; k < 2; k++) {
			w.members[k].min = w.members[k].guaranteed = 1;
			w.members[k].most = NO_LIMIT;
			w.q.gpus += w.members[k].gpus_per_replica;
		}
		for (int i = 0; i < 2 * RATIO_SYNC; i++, done++) {
			if (i < RATIO_SYNC)
				change_wishes(&r, &w);
			for (size_t k = 0; k < w.q.n_members; k++)
				w.members[k].is_fixed = false;
			resolve_late(&w, check_role, done);
			pool_allocate(&w.q, w.grants, &w.total);
			scarce += is_short(&w, 0) || is_short(&w, 1);
			send(&r, &w, i < RATIO_SYNC ? 40 : 0, check_role, done);
		}
		for (size_t k = 0; k < 2; k++)
			if (w.actual[k] < 1)
				fail_at("no role of a pair starves", done, &w, k);
	}
	assert_true(scarce > n / 20); // the law was put to the test
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(cap_holds_at_every_instant),
	        cmocka_unit_test(used_counts_the_largest_values),
	        cmocka_unit_test(pool_above_its_cap_only_shrinks),
	        cmocka_unit_test(shares_follow_the_order),
	        cmocka_unit_test(minimums_above_the_cap_follow_the_order),
	        cmocka_unit_test(member_costs_the_others_at_most_its_most),
	        cmocka_unit_test(minimum_alone_takes_nothing),
	        cmocka_unit_test(fixed_member_takes_nothing),
	        cmocka_unit_test(surplus_is_returned_at_once),
	        cmocka_unit_test(grants_become_the_shares),
	        cmocka_unit_test(equals_take_turns),
	        cmocka_unit_test(ratio_stays_in_its_bounds),
	        cmocka_unit_test(pair_reaches_its_shares),
	        cmocka_unit_test(no_role_of_a_pair_starves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
