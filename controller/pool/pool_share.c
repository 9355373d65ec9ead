// SPDX-License-Identifier: Apache-2.0
// Shares one pool: fills the allocator's request from the seats, and keeps the grants until an input changes.
#include "base/buf.h"
#include "controller/pool/pools_private.h"
#include "policies/engine/number.h"

#define MONTH_EVERY_MS 60000 // between two looks at what a monthly budget allows

static int64_t i64_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

// When the last decision of the member no longer counts (monotonic clock).
static int64_t stale_at(const struct pool_seat *s)
{
	return s->ticked_ms + i64_max(POOL_STALE_MS, POOL_STALE_INTERVALS * s->interval_ms);
}

static bool counts_as_fixed(const struct pool_seat *s, const struct pool_seat *alone, int64_t now_mono_ms)
{
	return s->is_idle || s->other || now_mono_ms >= stale_at(s) || (s->refusals >= POOL_REFUSALS_MAX && s != alone);
}

int32_t pool_seat_held(const struct pool_seat *s)
{
	return i32_max(i32_max(s->current, s->status), i32_max(s->in_flight, s->unacked));
}

// The replicas of a member while a write is not acknowledged: the larger one counts against the cap, the smaller one
// for a ratio. Pods of a rollout's surge, in excess of spec.replicas, hold GPUs, but no member has to yield for them.
static int32_t pending_of(const struct pool_seat *s, bool is_fixed)
{
	int32_t most = i32_max(i32_max(s->current, is_fixed ? 0 : s->status), i32_max(s->in_flight, s->unacked));
	if (most > s->current)
		return most;
	int32_t least = s->current;
	if (s->in_flight >= 0)
		least = i32_min(least, s->in_flight);
	return s->unacked >= 0 ? i32_min(least, s->unacked) : least;
}

static void fill_member(struct pool *p, size_t i, const struct pool_seat *alone, int64_t now_mono_ms)
{
	const struct pool_seat *s = p->seats[i];
	struct pool_member *m = &p->members[i];
	bool is_silent = !s->has_asked; // without metrics
	m->is_fixed = counts_as_fixed(s, alone, now_mono_ms) || (is_silent && !m->backfill);
	m->min = i32_max(i32_min(s->min, POOL_REPLICAS_MAX), 0);
	m->max = i32_max(i32_min(s->max, POOL_REPLICAS_MAX), m->min);
	m->current = i32_min(s->current, POOL_REPLICAS_MAX);
	m->pending = i32_min(pending_of(s, m->is_fixed), POOL_REPLICAS_MAX);
	m->asked = is_silent ? pool_held(m) : i32_max(i32_min(s->asked, POOL_REPLICAS_MAX), 0);
	if (!m->is_fixed)
		p->until_mono_ms = i64_min(p->until_mono_ms, stale_at(s));
}

static enum pool_state state_of(struct pool *p)
{
	p->unknown = NULL;
	if (p->pools->options.unsupported)
		return POOL_UNSUPPORTED;
	if (p->object && !p->valid)
		return POOL_INVALID;
	if (p->n > POOL_MEMBERS_MAX)
		return POOL_TOO_LARGE;
	for (size_t i = 0; i < p->n; i++)
		if (!p->seats[i]->is_known) {
			p->unknown = p->seats[i];
			return POOL_UNKNOWN;
		}
	return POOL_SHARED;
}

// Nothing is granted, but what the members hold is known.
static void add_up(struct pool *p)
{
	p->total = (struct pool_total){0};
	for (size_t i = 0; i < p->n; i++) {
		p->total.used_gpus += (int64_t)pool_seat_held(p->seats[i]) * p->members[i].gpus_per_replica;
		p->grants[i] = (struct pool_grant){.replicas = p->members[i].current, .reason = POOL_KEPT};
	}
}

bool pool_share(struct pool *p, const struct pool_seat *alone, int64_t now_ms, int64_t now_mono_ms)
{
	uint64_t turn = (uint64_t)(i64_max(now_ms, 0) / p->spec->turn_every_ms);
	bool is_special = alone && alone->refusals >= POOL_REFUSALS_MAX;
	if (!p->is_stale && !is_special && turn == p->turn && now_mono_ms < p->until_mono_ms)
		return false;
	p->is_stale = is_special; // a sharing that serves one member alone is not kept
	p->turn = turn;
	p->until_mono_ms = p->spec->has_per_month ? now_mono_ms + MONTH_EVERY_MS : INT64_MAX;
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
	if (p->total.minimum_gpus > q.gpus || (q.has_budget && p->total.minimum_micro > q.budget_micro))
		p->state = POOL_OVERBOOKED;
	return !is_special;
}

void pool_put_state(const struct pool *p, struct buf *out)
{
	switch (p->state) {
	case POOL_UNKNOWN:
		buf_printf(out, "pool %s is held until the replicas of %s are known", p->name,
		           p->unknown ? p->unknown->key : "every member");
		break;
	case POOL_OVERBOOKED:
		if (p->total.minimum_gpus > p->spec->gpus)
			buf_printf(out,
			           "the minimums of pool %s need %lld GPUs, the cap is %d: lower a minReplicas or "
			           "raise the cap",
			           p->name, (long long)p->total.minimum_gpus, p->spec->gpus);
		else
			buf_printf(out,
			           "the minimums of pool %s cost %.6g per hour, the budget is %.6g: lower a "
			           "minReplicas or raise the budget",
			           p->name, (double)p->total.minimum_micro / 1e6, p->spec->per_hour);
		break;
	case POOL_INVALID:
		buf_printf(out, "pool %s is invalid: %s", p->name, p->object->fault);
		break;
	case POOL_TOO_LARGE:
		buf_printf(out, "pool %s has %zu members, the ceiling is %d", p->name, p->n, POOL_MEMBERS_MAX);
		break;
	case POOL_UNSUPPORTED:
		buf_printf(out, "pool %s is held: %s", p->name, p->pools->options.unsupported);
		break;
	default:
		buf_printf(out, "pool %s uses %lld of %d GPUs", p->name, (long long)p->total.used_gpus, p->spec->gpus);
		break;
	}
}
