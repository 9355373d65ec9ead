// SPDX-License-Identifier: Apache-2.0
// What a tick of one policy reports to its pool, and what the pool grants.
#include "base/buf.h"
#include "base/err.h"
#include "controller/pool/pools.h"
#include "policies/engine/decision.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/explain/explain.h"

static void mark_stale(struct pool_membership *s)
{
	if (s->pool)
		s->pool->is_stale = true;
	if (s->other)
		s->other->is_stale = true;
}

static void set(struct pool_membership *s, int32_t *field, int32_t value)
{
	if (*field != value)
		mark_stale(s);
	*field = value;
}

static void set_flag(struct pool_membership *s, bool *field, bool value)
{
	if (*field != value)
		mark_stale(s);
	*field = value;
}

// ---- a decision ----

static void note_heard(struct pool_membership *s)
{
	if (s->is_heard)
		return;
	s->is_heard = true;
	s->pools->n_heard++;
	mark_stale(s);
}

static void note_lost(struct pool_membership *s, int64_t now_mono_ms)
{
	if (!s->is_countable || s->lost_ms >= 0)
		return;
	s->lost_ms = now_mono_ms;
	mark_stale(s);
}

// The replicas of the target are known for the first time. Those that the process before has ordered are not known: for
// a while after a start, spec.replicas stand for them.
static void note_first(struct pool_membership *s, const struct pool_tick *t, const struct decision *d)
{
	const struct pools *p = s->pools;
	bool is_start = p->started_ms < 0 || t->now_mono_ms - p->started_ms < POOL_START_MS;
	set_flag(s, &s->is_known, true);
	if (!is_start)
		return;
	set(s, &s->granted, i32_min(d->current, d->max_replicas));
	s->granted_ms = p->started_ms < 0 ? t->now_mono_ms : p->started_ms;
}

// After a while without a single target that could be read, every member gets time to report again.
static void note_read(struct pool_membership *s, int64_t now_mono_ms)
{
	struct pools *p = s->pools;
	if (now_mono_ms - p->read_ms >= i64_max(POOL_STALE_MS, POOL_STALE_INTERVALS * s->interval_ms)) {
		p->resumed_ms = now_mono_ms;
		for (struct pool *pool = p->by_name; pool; pool = pool->hh.next)
			pool->is_stale = true;
	}
	p->read_ms = now_mono_ms;
}

static void note_existing(struct pool_membership *s, int32_t existing, int64_t now_mono_ms)
{
	if (existing < 0) {
		note_lost(s, now_mono_ms);
		return;
	}
	set(s, &s->existing, existing);
	set_flag(s, &s->is_countable, true);
	if (s->lost_ms >= 0)
		mark_stale(s);
	s->lost_ms = -1;
}

static void note_decision(struct pool_membership *s, const struct pool_tick *t, const struct decision *d)
{
	// A target that was scaled to 0 by hand stays there.
	bool is_off = d->reason == REASON_SCALING_DISABLED;
	s->interval_ms = t->policy->interval_ms;
	if (t->now_mono_ms - s->ticked_ms >= POOL_STALE_MS)
		mark_stale(s); // it counted as fixed, perhaps
	s->ticked_ms = t->now_mono_ms;
	note_heard(s);
	if (!s->is_known)
		note_first(s, t, d);
	set_flag(s, &s->is_idle, t->policy->paused || t->policy->dry_run || is_off);
	set_flag(s, &s->has_asked, d->action != ACTION_HOLD);
	set(s, &s->asked, d->desired);
	set(s, &s->min, d->min_replicas);
	set(s, &s->max, d->max_replicas);
	set(s, &s->current, d->current);
	note_read(s, t->now_mono_ms);
	note_existing(s, t->existing_replicas, t->now_mono_ms);
	set(s, &s->in_flight, -1);
	// The larger of several open writes: each may still take effect, until one is known to have done so.
	if (t->unacked < 0 && s->unacked > s->granted)
		set(s, &s->granted, s->unacked); // it did, perhaps
	set(s, &s->unacked, t->unacked < 0 ? -1 : i32_max(t->unacked, s->unacked));
}

static enum reason reason_of(enum pool_reason reason)
{
	switch (reason) {
	case POOL_BUDGET_LIMITED:
		return REASON_BUDGET_LIMITED;
	case POOL_RATIO_LIMITED:
		return REASON_RATIO_LIMITED;
	case POOL_WAITING:
		return REASON_WAITING_FOR_GPUS;
	default:
		return REASON_POOL_LIMITED;
	}
}

// Fits a grant to the steps of the policy. The GPUs that this leaves stay reserved for the member.
static int32_t in_steps(const struct policy *p, const struct decision *d, int32_t granted)
{
	int32_t most = i32_max(d->desired, d->current);
	granted = i32_min(granted, most);
	if (granted == d->desired || granted == d->current || p->replica_multiple <= 1)
		return granted;
	int32_t down = multiple_down(granted, p->replica_multiple);
	return granted > d->current ? i32_max(down, d->current) : i32_max(down, i32_min(granted, d->min_replicas));
}

// Whether the policy is held alone, whatever its pool grants to others.
static bool is_excluded(const struct pool_membership *s)
{
	return s->other || s->is_excess;
}

// Nothing is granted: the member keeps what it has, or scales down as it wants.
static void hold(const struct pool_membership *s, const struct pool_tick *t, struct decision *d, struct buf *text)
{
	int32_t granted = i32_min(d->desired, d->current);
	if (granted == d->desired)
		return;
	// Usual for a moment, so no warning.
	bool waits = !is_excluded(s) && (s->pool->state == POOL_UNKNOWN || s->pool->is_late);
	decide_grant(t->policy, granted, waits ? REASON_WAITING_FOR_GPUS : REASON_POOL_HELD, d);
	if (is_excluded(s))
		pool_put_exclusion(s, text);
	else
		pool_put_state(s->pool, text);
}

static bool has_ratio(const struct pool *p, size_t i)
{
	for (size_t k = 0; k < p->n_ratios; k++)
		if (p->ratios[k].of == i || p->ratios[k].to == i)
			return true;
	return false;
}

static void grant(struct pool_membership *s, const struct pool_tick *t, struct decision *d, struct buf *text)
{
	const struct pool *p = s->pool;
	struct pool_grant g = p->grants[s->index];
	int32_t granted = in_steps(t->policy, d, g.replicas);
	if (p->is_late && d->desired < granted && !has_ratio(p, s->index))
		granted = d->desired; // fewer than at the last sharing limits no other member
	// What is written lower counts until that is acknowledged.
	set(s, &s->granted, granted < d->current ? s->granted : granted);
	set(s, &s->own, granted < d->current || s->unacked >= 0 ? i32_max(s->own, granted) : granted);
	s->granted_ms = t->now_mono_ms;
	if (granted == d->desired)
		return;
	if (p->is_late) {
		decide_grant(t->policy, granted, REASON_WAITING_FOR_GPUS, d);
		pool_put_state(p, text);
		return;
	}
	decide_grant(t->policy, granted, reason_of(g.reason), d);
	if (g.reason == POOL_GRANTED || g.reason == POOL_AT_MIN || g.reason == POOL_AT_MAX || g.reason == POOL_KEPT)
		g.reason = POOL_LIMITED; // the steps of the policy, within the cap
	explain_pool_reason(text, p->name, p->spec->gpus, &g, &p->total);
}

// Lets the other members tick whose grants are not what they have, so that GPUs change hands without waiting for an
// interval; each at most once per interval of its own.
static void ask_others(const struct pool *p, const struct pool_membership *but, int64_t now_mono_ms)
{
	if (!p->pools->options.ask || p->state != POOL_SHARED)
		return;
	for (size_t i = 0; i < p->n; i++) {
		struct pool_membership *s = p->memberships[i];
		if (s == but || p->members[i].is_fixed || p->grants[i].replicas == s->current || s->in_flight >= 0 ||
		    now_mono_ms - s->asked_ms < s->interval_ms)
			continue;
		s->asked_ms = now_mono_ms;
		p->pools->options.ask(s->user);
	}
}

void pool_membership_decide(struct pool_membership *s, const struct pool_tick *t, struct decision *d, struct buf *text)
{
	if (!s)
		return;
	pools_assign_all(s->pools);
	note_decision(s, t, d);
	struct pool *p = s->pool;
	if (!p)
		return;
	bool is_new = pool_share(p, s, t->now_ms, t->now_mono_ms);
	// Without metrics, a member is neither limited nor moved, unless it is one that yields.
	bool is_shared = !is_excluded(s) && p->state == POOL_SHARED, is_fixed = p->members[s->index].is_fixed;
	if (is_shared && !is_fixed)
		grant(s, t, d, text);
	else if (!s->is_idle && (!is_shared || p->is_late)) // late: perhaps it is not fixed any more
		hold(s, t, d, text);
	if (d->write && !t->dry_run)
		set(s, &s->in_flight, d->desired);
	pool_spending_count(p, t->now_ms);
	if (is_new)
		ask_others(p, s, t->now_mono_ms);
}

// ---- what follows ----

// Whether an error can be due to the target and the rights on it, rather than to an outage that hides all of them.
static bool is_of_target(const struct err *error)
{
	switch (error->kind) {
	case ERR_UNREACHABLE:
	case ERR_TIMEOUT:
	case ERR_TLS:
	case ERR_THROTTLED:
	case ERR_CANCELED:
	case ERR_INTERNAL:
	case ERR_IO:
		return false;
	default:
		return true;
	}
}

void pool_membership_unreadable(struct pool_membership *s, const struct err *error, int64_t now_mono_ms)
{
	if (!s)
		return;
	note_heard(s);
	if (error->kind != ERR_NOT_FOUND) {
		// It keeps what it held for a while; without a decision it is fixed in the end.
		if (is_of_target(error))
			note_lost(s, now_mono_ms);
		return;
	}
	set_flag(s, &s->is_known, true);
	set_flag(s, &s->has_asked, false);
	set(s, &s->current, 0);
	set(s, &s->existing, 0);
	set(s, &s->granted, 0);
	set(s, &s->own, 0);
	set(s, &s->unacked, -1);
	set_flag(s, &s->is_countable, false);
	s->lost_ms = -1;
	s->ticked_ms = now_mono_ms;
}

void pool_membership_written(struct pool_membership *s, int32_t to, enum pool_write outcome)
{
	if (!s)
		return;
	if (outcome == POOL_WRITE_DONE) {
		set(s, &s->current, to);
		set(s, &s->granted, to);
		set(s, &s->own, i32_min(s->own, to));
		set(s, &s->unacked, -1); // an earlier write can no longer take effect
		set(s, &s->refusals, 0);
	} else if (outcome == POOL_WRITE_LOST) {
		set(s, &s->unacked, i32_max(s->unacked, to));
	} else if (outcome == POOL_WRITE_REFUSED) {
		set(s, &s->refusals, i32_min(s->refusals + 1, POOL_REFUSALS_MAX));
	}
	set(s, &s->in_flight, -1);
}

void pool_membership_end(struct pool_membership *s)
{
	if (s)
		set(s, &s->in_flight, -1);
}
