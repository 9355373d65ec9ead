// SPDX-License-Identifier: Apache-2.0
// Shares one pool: fills the allocator's request from the seats, and keeps the grants until an input changes.
#include "base/buf.h"
#include "controller/pool/pools.h"
#include "policies/engine/number.h"

#define MONTH_EVERY_MS 60000 // between two looks at what a monthly budget allows

// When the last decision of the member no longer counts (monotonic clock).
static int64_t stale_at(const struct pool_membership *s)
{
	return s->ticked_ms + i64_max(POOL_STALE_MS, POOL_STALE_INTERVALS * s->interval_ms);
}

static bool counts_as_fixed(const struct pool_membership *s, const struct pool_membership *alone, int64_t now_mono_ms)
{
	return s->is_idle || s->other || now_mono_ms >= stale_at(s) || (s->refusals >= POOL_REFUSALS_MAX && s != alone);
}

// When the existing replicas that can no longer be read cease to count.
static int64_t lost_at(const struct pool_membership *s)
{
	return s->lost_ms < 0 ? INT64_MAX : i64_max(s->lost_ms, s->pools->resumed_ms) + POOL_GRANTED_MS;
}

static int32_t existing_of(const struct pool_membership *s, int64_t now_mono_ms)
{
	return now_mono_ms < lost_at(s) ? s->existing : 0;
}

// When a target that has not been read since the last tick is treated as unreadable.
static int64_t unread_at(const struct pool_membership *s)
{
	int64_t from = i64_max(s->ticked_ms, s->pools->resumed_ms);
	return from + i64_max(POOL_GRANTED_MS, POOL_STALE_INTERVALS * s->interval_ms);
}

// spec.replicas count up to what the pool granted. More than that is what the tenant typed, and counts as its pods come
// to exist; and so do the grants of a member that is fixed, after POOL_GRANTED_MS:
//
//   pods             target       what a fixed member counts for then, at most spec.replicas
//   counted          read         the pods
//   no longer        either       the pods of the last count, and 0 after another POOL_GRANTED_MS
//   never counted    read         what this process granted: that much may run, and no tenant can type it
//   never counted    unreadable   the same until unread_at(), then 0
static int32_t counted_spec(const struct pool_membership *s, bool is_fixed, int64_t now_mono_ms)
{
	int32_t granted = 0;
	if (!is_fixed || now_mono_ms < s->granted_ms + POOL_GRANTED_MS)
		granted = s->granted;
	else if (!s->is_countable && now_mono_ms < unread_at(s))
		granted = s->own;
	return i32_min(s->current, i32_max(existing_of(s, now_mono_ms), granted));
}

// The replicas of a member while a write is not acknowledged: the larger one counts against the cap, the smaller one
// for a ratio. Pods of a rollout's surge, in excess of spec.replicas, hold GPUs while they exist.
static int32_t pending_of(const struct pool_membership *s, int32_t current, bool is_fixed, int64_t now_mono_ms)
{
	// A write that was open at the last tick can no longer take effect.
	bool is_past = is_fixed && now_mono_ms >= s->ticked_ms + POOL_GRANTED_MS;
	int32_t unacked = is_past ? -1 : s->unacked;
	int32_t most = i32_max(i32_max(current, existing_of(s, now_mono_ms)), i32_max(s->in_flight, unacked));
	if (most > current)
		return most;
	int32_t least = current;
	if (s->in_flight >= 0)
		least = i32_min(least, s->in_flight);
	return unacked >= 0 ? i32_min(least, unacked) : least;
}

// Some input changes at at_ms, if that is not over.
static void until(struct pool *p, int64_t at_ms, int64_t now_mono_ms)
{
	if (at_ms > now_mono_ms && at_ms < p->until_mono_ms)
		p->until_mono_ms = at_ms;
}

static void fill_member(struct pool *p, size_t i, const struct pool_membership *alone, int64_t now_mono_ms)
{
	const struct pool_membership *s = p->memberships[i];
	struct pool_member *m = &p->members[i];
	bool is_silent = !s->has_asked; // without metrics
	m->is_fixed = counts_as_fixed(s, alone, now_mono_ms) || (is_silent && !m->backfill);
	m->min = i32_max(i32_min(s->min, POOL_REPLICAS_MAX), 0);
	m->max = i32_max(i32_min(s->max, POOL_REPLICAS_MAX), m->min);
	m->current = i32_min(counted_spec(s, m->is_fixed, now_mono_ms), POOL_REPLICAS_MAX);
	m->pending = i32_min(pending_of(s, m->current, m->is_fixed, now_mono_ms), POOL_REPLICAS_MAX);
	m->asked = is_silent ? pool_held(m) : i32_max(i32_min(s->asked, POOL_REPLICAS_MAX), 0);
	if (m->is_fixed) { // it claims what exists, whatever its policy asks for
		m->asked = i32_min(m->asked, existing_of(s, now_mono_ms));
		m->min = i32_min(m->min, m->asked);
	}
	if (!m->is_fixed) {
		until(p, stale_at(s), now_mono_ms);
	} else {
		until(p, s->granted_ms + POOL_GRANTED_MS, now_mono_ms);
		until(p, s->ticked_ms + POOL_GRANTED_MS, now_mono_ms);
		until(p, unread_at(s), now_mono_ms);
	}
	until(p, lost_at(s), now_mono_ms);
}

// A member that the start still waits for. What the members have at a start was granted by the process before.
static const struct pool_membership *find_unknown(struct pool *p, int64_t now_mono_ms)
{
	struct pools *all = p->pools;
	if (all->started_ms < 0)
		all->started_ms = now_mono_ms;
	if (now_mono_ms - all->started_ms >= POOL_START_MS)
		return NULL;
	until(p, all->started_ms + POOL_START_MS, now_mono_ms);
	for (size_t i = 0; i < p->n; i++)
		if (!p->memberships[i]->is_heard)
			return p->memberships[i];
	return NULL;
}

static enum pool_state state_of(const struct pool *p)
{
	if (p->pools->options.unsupported)
		return POOL_UNSUPPORTED;
	if (p->object && !p->valid)
		return POOL_INVALID;
	return p->unknown ? POOL_UNKNOWN : POOL_SHARED;
}

// Nothing is granted, but what the members hold is known.
static void add_up(struct pool *p)
{
	p->total = (struct pool_total){0};
	for (size_t i = 0; i < p->n; i++) {
		p->total.used_gpus += (int64_t)pool_held(&p->members[i]) * p->members[i].gpus_per_replica;
		p->grants[i] = (struct pool_grant){.replicas = p->memberships[i]->current, .reason = POOL_HELD};
	}
}

bool pool_share(struct pool *p, const struct pool_membership *alone, int64_t now_ms, int64_t now_mono_ms)
{
	uint64_t turn = (uint64_t)(i64_max(now_ms, 0) / p->spec->turn_every_ms);
	bool is_special = alone && alone->refusals >= POOL_REFUSALS_MAX;
	if (!p->is_stale && !is_special && turn == p->turn && now_mono_ms < p->until_mono_ms)
		return false;
	p->is_late = p->n > POOL_SHARED_AT_ONCE &&
	             now_mono_ms - p->shared_mono_ms < (int64_t)(p->n - POOL_SHARED_AT_ONCE) / POOL_MEMBERS_PER_MS;
	if (p->is_late)
		return false;
	p->shared_mono_ms = now_mono_ms;
	p->is_stale = is_special; // a sharing that serves one member alone is not kept
	p->turn = turn;
	p->until_mono_ms = p->spec->has_per_month ? now_mono_ms + MONTH_EVERY_MS : INT64_MAX;
	p->unknown = find_unknown(p, now_mono_ms);
	p->state = state_of(p);
	p->budget_micro = 0;
	for (size_t i = 0; i < p->n; i++)
		fill_member(p, i, alone, now_mono_ms);
	if (p->state != POOL_SHARED) {
		add_up(p);
		return !is_special;
	}
	const struct gpu_pool *spec = p->spec;
	struct pool_request q = {.gpus = spec->gpus,
	                         .turn = turn,
	                         .members = p->members,
	                         .n_members = p->n,
	                         .ratios = p->ratios,
	                         .n_ratios = p->n_ratios};
	int64_t since_ms, spent_micro = pool_spent(p, now_ms, &since_ms);
	gpu_pool_budget(spec, &q, now_ms, spent_micro, since_ms);
	p->budget_micro = q.has_budget ? q.budget_micro : 0;
	pool_allocate(&q, p->grants, &p->total);
	return !is_special;
}

void pool_put_state(const struct pool *p, struct buf *out)
{
	switch (p->state) {
	case POOL_UNKNOWN:
		buf_printf(out, "pool %s is held until the replicas of %s are known", p->name,
		           p->unknown ? p->unknown->key : "every member");
		break;
	case POOL_INVALID:
		buf_printf(out, "pool %s is invalid: %s", p->name, p->object->fault);
		break;
	case POOL_UNSUPPORTED:
		buf_printf(out, "pool %s is held: %s", p->name, p->pools->options.unsupported);
		break;
	default:
		if (p->is_late)
			buf_printf(out, "pool %s has %zu members and is shared again in a moment", p->name, p->n);
		else
			buf_printf(out, "pool %s uses %lld of %d GPUs", p->name, (long long)p->total.used_gpus,
			           p->spec->gpus);
		break;
	}
}

void pool_put_exclusion(const struct pool_membership *s, struct buf *out)
{
	if (s->other)
		buf_printf(out, "pools %s and %s both claim this policy: remove it from one of them", s->pool->name,
		           s->other->name);
	else
		buf_printf(out,
		           "pool %s has places for %d policies, and for %zu of namespace %s: remove policies from the "
		           "namespace",
		           s->pool->name, POOL_MEMBERS_MAX, s->pool->per_namespace, s->namespace_name);
}
