// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/startup.h"

#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/quantile.h"

// Without a ready count the start of an order cannot be detected: the order is dropped after this time.
#define UNOBSERVED_ORDER_MS 3600000

static void drop(struct startup *s, uint32_t i)
{
	s->n_orders--;
	memmove(&s->orders[i], &s->orders[i + 1], (s->n_orders - i) * sizeof s->orders[0]);
	s->orders[s->n_orders] = (struct startup_order){0}; // equal states are equal bytes
}

static void add(struct startup *s, int64_t time_ms, int32_t n)
{
	if (s->n_orders > 0)
		time_ms = i64_max(time_ms, s->orders[s->n_orders - 1].time_ms);
	if (s->n_orders == STARTUP_ORDERS_MAX) {
		struct startup_order *o = s->orders;
		o[1].time_ms = o[0].time_ms;
		o[1].replicas = i32_from_i64((int64_t)o[0].replicas + o[1].replicas);
		o[1].waiting = i32_from_i64((int64_t)o[0].waiting + o[1].waiting);
		drop(s, 0);
	}
	s->orders[s->n_orders++] = (struct startup_order){time_ms, n, n};
}

// Cancels the newest orders first, as a ReplicaSet removes pods that are not ready first.
static void cancel(struct startup *s, int32_t n)
{
	while (n > 0 && s->n_orders > 0) {
		struct startup_order *o = &s->orders[s->n_orders - 1];
		int32_t gone = i32_min(n, o->replicas);
		n -= gone;
		o->replicas -= gone;
		o->waiting = i32_min(o->waiting, o->replicas);
		if (o->replicas == 0)
			drop(s, s->n_orders - 1);
	}
}

void startup_record_order(struct startup *s, int64_t time_ms, int32_t n)
{
	add(s, time_ms, n);
	s->fresh = i32_from_i64((int64_t)s->fresh + n);
}

bool startup_record_start(struct startup *s, int64_t start_ms)
{
	if (start_ms < 0 || start_ms > STARTUP_LEARNT_MAX_MS)
		return false;
	s->starts_ms[s->next_start] = start_ms;
	s->next_start = (s->next_start + 1) % STARTUP_STARTS_MAX;
	if (s->n_starts < STARTUP_STARTS_MAX)
		s->n_starts++;
	return true;
}

// At most `lacking` replicas are not ready; waiting replicas beyond that have started, the oldest orders first.
static bool match_starts(struct startup *s, int64_t now_ms, int32_t lacking, bool learn)
{
	int64_t started = -(int64_t)lacking;
	for (uint32_t i = 0; i < s->n_orders; i++)
		started += s->orders[i].waiting;
	bool learnt = false;
	for (uint32_t i = 0; i < s->n_orders && started > 0; i++) {
		struct startup_order *o = &s->orders[i];
		if (o->waiting == 0)
			continue;
		int32_t n = o->waiting < started ? o->waiting : (int32_t)started;
		o->waiting -= n;
		started -= n;
		if (o->waiting > 0 || !learn)
			continue;
		learnt |= startup_record_start(s, i64_sub(now_ms, o->time_ms));
	}
	return learnt;
}

// Drops orders that neither wait nor are still expected.
static void forget(struct startup *s, int64_t now_ms, int64_t counts_ms, bool unobserved)
{
	for (uint32_t i = s->n_orders; i-- > 0;) {
		int64_t age_ms = i64_sub(now_ms, s->orders[i].time_ms);
		if (age_ms >= counts_ms && (s->orders[i].waiting == 0 || (unobserved && age_ms >= UNOBSERVED_ORDER_MS)))
			drop(s, i);
	}
}

// Not inline, so that a tick without orders saves no registers for this.
__attribute__((noinline)) static bool observe_orders(struct startup *s, const struct policy *policy, int64_t now_ms,
                                                     int32_t spec, int32_t ready)
{
	bool first = s->last_spec < 0;
	int64_t unexplained = first ? 0 : (int64_t)spec - s->last_spec - s->fresh;
	// The observed scale is older than the recorded order.
	if (!first && s->fresh > 0 && spec <= s->last_spec &&
	    i64_sub(now_ms, s->orders[s->n_orders - 1].time_ms) < i64_add(policy->interval_ms, policy->interval_ms))
		return false;
	if (unexplained > 0)
		add(s, now_ms, i32_from_i64(unexplained));
	else if (unexplained < 0)
		cancel(s, i32_from_i64(-unexplained));
	s->last_spec = spec;
	s->fresh = 0;
	// At the first tick after a restart, the start of earlier orders may have happened at any time.
	bool learnt = ready >= 0 && match_starts(s, now_ms, i32_max(spec - ready, 0), !first);
	forget(s, now_ms, startup_ms(s, policy), ready < 0);
	return learnt;
}

bool startup_observe(struct startup *s, const struct policy *policy, int64_t now_ms, int32_t spec, int32_t ready)
{
	if (s->n_orders == 0 && s->fresh == 0 && spec == s->last_spec)
		return false;
	return observe_orders(s, policy, now_ms, spec, ready);
}

bool startup_is_learnt(const struct startup *s, const struct policy *policy)
{
	return s->n_starts >= (policy->startup.given ? STARTUP_STARTS_TRUSTED : 1);
}

int64_t startup_ms(const struct startup *s, const struct policy *policy)
{
	if (!startup_is_learnt(s, policy))
		return policy->startup.given ? policy->startup.start_ms : -1;
	double starts_ms[STARTUP_STARTS_MAX];
	for (uint32_t i = 0; i < s->n_starts; i++)
		starts_ms[i] = (double)s->starts_ms[i];
	return (int64_t)quantile_select(starts_ms, s->n_starts, s->n_starts / 2);
}

int32_t startup_starting(const struct startup *s, const struct policy *policy, int64_t now_ms)
{
	if (s->n_orders == 0)
		return 0;
	int64_t cutoff_ms = i64_sub(now_ms, startup_ms(s, policy)), coming = 0;
	for (uint32_t i = 0; i < s->n_orders; i++)
		if (s->orders[i].time_ms > cutoff_ms)
			coming += s->orders[i].replicas;
	return i32_from_i64(coming);
}
