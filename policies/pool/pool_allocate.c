// SPDX-License-Identifier: Apache-2.0
#include "policies/pool/pool_allocate.h"

#include <stdbool.h>

#include "policies/engine/number.h"
#include "policies/pool/pool_fill.h"
#include "policies/pool/pool_grant.h"
#include "policies/pool/pool_pair.h"
#include "policies/pool/pool_request.h"

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
	return (struct pool_room){q->gpus, q->has_budget ? q->budget_micro : POOL_NO_BUDGET};
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

// Whether the pool allows the member fewer replicas than fit into the pool.
static bool has_own_limit(const struct pool_request *q, const struct pool_member *m)
{
	return ((int64_t)m->most + 1) * m->gpus_per_replica <= q->gpus;
}

static enum pool_reason reason(const struct pool_request *q, const struct pool_member *m, const struct pool_grant *g,
                               const struct pool_room *left)
{
	bool wants_more = i32_max(i32_min(m->asked, m->max), m->min) > m->most;
	if (m->is_fixed)
		return i32_max(m->current, m->pending) > m->most ? POOL_MEMBER_LIMITED : POOL_KEPT;
	if (g->replicas == m->asked)
		return POOL_GRANTED;
	if (g->replicas != g->value) // what the cap grants
		return POOL_RATIO_LIMITED;
	if (g->replicas == wanted(m) && wants_more && has_own_limit(q, m))
		return POOL_MEMBER_LIMITED;
	if (g->replicas == wanted(m) && !wants_more)
		return m->asked < m->min ? POOL_AT_MIN : POOL_AT_MAX;
	if (g->replicas < g->share)
		return POOL_WAITING;
	return share_reason(m, g, left);
}

static void explain_pair(const struct pool_request *q, struct pool_grant *g, size_t i, int32_t most)
{
	if (g[i].reason == POOL_LIMITED && g[i].share >= most)
		g[i].reason = POOL_RATIO_LIMITED;
}

// ---- the whole pool ----

static void add_minimums(const struct pool_request *q, struct pool_total *t)
{
	for (size_t i = 0; i < q->n_members; i++) {
		const struct pool_member *m = &q->members[i];
		int64_t n = pool_guaranteed(m);
		t->minimum_gpus += n * m->gpus_per_replica;
		t->minimum_micro = i64_add(t->minimum_micro, n * pool_replica_micro(m));
	}
}

static void add_used(const struct pool_request *q, const struct pool_grant *g, struct pool_total *t)
{
	for (size_t i = 0; i < q->n_members; i++) {
		const struct pool_member *m = &q->members[i];
		int64_t n = i32_max(pool_held(m), i32_min(g[i].replicas, m->most));
		t->used_gpus += n * m->gpus_per_replica;
		t->used_micro = i64_add(t->used_micro, n * pool_replica_micro(m));
	}
}

void pool_allocate(const struct pool_request *q, struct pool_grant *g, struct pool_total *ret_total)
{
	*ret_total = (struct pool_total){0};
	add_minimums(q, ret_total);
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
		explain_pair(q, g, r->of, pool_pair_of_max(r, g[r->to].share));
		explain_pair(q, g, r->to, pool_pair_to_max(r, g[r->of].share));
	}
	add_used(q, g, ret_total);
}
