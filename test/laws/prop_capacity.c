// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of spec.capacity on random policies, loads and clusters: Fixed orders no more than fits, an
// unknown capacity changes nothing, and only what has been unschedulable for giveUpAfter is withdrawn, and not ordered
// again before retryAfter. Each tick is compared with the same tick of the same policy without capacity. And of the
// room that a target reserves: it never exceeds what the controller itself wrote recently, whatever the target claims.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "k8s/capacity/fit_order.h"
#include "test/laws/prop.h"

#define PENDING_MAX 8

struct cluster {
	int64_t since_ms[PENDING_MAX];
};

// What fits, and which of the replicas cannot be scheduled, changes at random.
static void show_capacity(struct prop_random *r, struct engine *e, struct cluster *c)
{
	struct obs_capacity *o = &e->seen.capacity;
	*o = (struct obs_capacity){.is_known = true, .fit = prop_up_to(r, 6), .since_ms = c->since_ms};
	int32_t most = e->seen.spec_replicas < PENDING_MAX ? e->seen.spec_replicas : PENDING_MAX;
	o->n_since = prop_chance(r, 50) ? (size_t)prop_up_to(r, most) : 0;
	o->unschedulable = (int32_t)o->n_since;
	for (size_t i = o->n_since; i-- > 0;)
		c->since_ms[i] = (i + 1 < o->n_since ? c->since_ms[i + 1] : e->now_ms) - 20000 * prop_up_to(r, 9);
}

// Shows the next load, and decides it also as a policy without capacity would: *ret_plain.
static void tick(struct prop_random *r, struct engine *e, struct decision *ret_plain)
{
	struct engine plain;
	for (size_t k = 0; k < e->policy.n_signals; k++)
		prop_show_random(r, e, k);
	prop_copy(&plain, e);
	plain.policy.capacity = (struct policy_capacity){.mode = CAPACITY_OFF};
	engine_tick_as_stamped(&plain);
	engine_tick_as_stamped(e);
	*ret_plain = plain.decision;
	engine_done(&plain);
}

static void begin(struct prop_random *r, struct engine *e, int mode)
{
	prop_engine(r, e, 1 + prop_up_to(r, 2));
	e->policy.capacity = (struct policy_capacity){
	        .mode = mode, .give_up_ms = 1000 * (30 + prop_up_to(r, 90)), .retry_ms = 1000 * prop_up_to(r, 600)};
	engine_start(e);
}

static void go_on(struct prop_random *r, struct engine *e)
{
	engine_apply(e);
	if (prop_chance(r, 20))
		e->seen.ready_replicas = prop_up_to(r, e->seen.spec_replicas);
	prop_advance(r, e);
}

static bool is_inside(const struct decision *d)
{
	return d->current >= d->min_replicas && d->current <= d->max_replicas;
}

static int32_t overdue(const struct engine *e)
{
	const struct obs_capacity *o = &e->seen.capacity;
	int32_t n = 0;
	for (size_t i = 0; i < o->n_since; i++)
		n += e->decision.time_ms - o->since_ms[i] >= e->policy.capacity.give_up_ms;
	return n;
}

static void fixed_orders_no_more_than_fits(void **state)
{
	struct prop_random r = {prop_seed() + 31};
	struct engine e;
	struct cluster c;
	struct decision plain;
	int64_t n = prop_ticks(), limited = 0;
	for (int64_t done = 0; done < n; engine_done(&e)) {
		begin(&r, &e, CAPACITY_FIXED);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			show_capacity(&r, &e, &c);
			tick(&r, &e, &plain);
			const struct decision *d = &e.decision;
			int64_t most = (int64_t)d->current + e.seen.capacity.fit;
			if (is_inside(d) && d->desired > d->current && d->desired > most &&
			    d->desired > d->min_replicas)
				prop_fail_at("Fixed orders no more than fits", done, &e);
			if (is_inside(d) && plain.desired > d->current && plain.desired <= most &&
			    d->desired != plain.desired)
				prop_fail_at("what fits is ordered", done, &e);
			limited += plain.desired > d->desired && plain.desired > d->current;
			go_on(&r, &e);
		}
	}
	assert_true(limited > n / 100); // the law was put to the test
}

static void unknown_capacity_changes_nothing(void **state)
{
	struct prop_random r = {prop_seed() + 32};
	struct engine e;
	struct decision plain;
	int64_t n = prop_ticks(), changed = 0;
	for (int64_t done = 0; done < n; engine_done(&e)) {
		begin(&r, &e, prop_chance(&r, 50) ? CAPACITY_FIXED : CAPACITY_ELASTIC);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			e.seen.capacity = (struct obs_capacity){.fit = 0, .unschedulable = prop_up_to(&r, 3)};
			tick(&r, &e, &plain);
			const struct decision *d = &e.decision;
			if (d->desired != plain.desired || d->action != plain.action || d->reason != plain.reason ||
			    d->write != plain.write)
				prop_fail_at("an unknown capacity changes nothing", done, &e);
			if (!engine_find(&e, REASON_CAPACITY_UNKNOWN) && !d->trace_cut)
				prop_fail_at("an unknown capacity is reported", done, &e);
			changed += d->write;
			go_on(&r, &e);
		}
	}
	assert_true(changed > n / 100);
}

static void only_what_waited_long_enough_is_withdrawn(void **state)
{
	struct prop_random r = {prop_seed() + 33};
	struct engine e;
	struct cluster c;
	struct decision plain;
	int64_t n = prop_ticks(), withdrawn = 0;
	for (int64_t done = 0; done < n; engine_done(&e)) {
		int64_t last_ms = -1;
		begin(&r, &e, CAPACITY_ELASTIC);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			show_capacity(&r, &e, &c);
			tick(&r, &e, &plain);
			const struct decision *d = &e.decision;
			int64_t taken = (int64_t)(plain.desired < d->current ? plain.desired : d->current) - d->desired;
			if (taken > (int64_t)e.seen.capacity.n_since)
				prop_fail_at("no running replica is withdrawn", done, &e);
			if (taken > 0 && !engine_find(&e, REASON_PENDING_REMOVED) &&
			    d->current - d->desired > overdue(&e))
				prop_fail_at("nothing is withdrawn before giveUpAfter", done, &e);
			if (taken > 0 && d->desired < d->min_replicas)
				prop_fail_at("minReplicas are never withdrawn", done, &e);
			if (taken > 0 && d->action == ACTION_HOLD)
				prop_fail_at("no data is a hold", done, &e);
			bool retries = last_ms >= 0 && d->time_ms - last_ms >= e.policy.capacity.retry_ms;
			if (last_ms >= 0 && !retries && is_inside(d) && d->desired > d->current &&
			    d->desired > (int64_t)d->current + e.seen.capacity.fit && d->desired > d->min_replicas)
				prop_fail_at("no more than fits is ordered before retryAfter", done, &e);
			if (d->write && engine_find(&e, REASON_CAPACITY_WITHDRAWN)) {
				last_ms = d->time_ms;
				withdrawn++;
			}
			go_on(&r, &e);
		}
	}
	assert_true(withdrawn > n / 1000);
}

// ---- reservations ----

#define MAX_REPLICAS 20
#define WRITES_MAX   64

// A target whose owner writes any number into its spec, whose pods appear or do not, and a controller that scales it.
struct claimant {
	struct fit_order order;
	int32_t spec, status;
	int64_t now_ms;
	// The controller's own writes.
	struct {
		int64_t at_ms;
		int32_t added;
	} writes[WRITES_MAX];
	size_t n_writes;
	int64_t reserved_ms; // since all replicas of an order existed, or since FIT_ORDER_REST_MS without any
	                     // reservation
	int64_t last_ms;     // of the last reservation
};

static void write_scale(struct claimant *c, struct prop_random *r)
{
	int32_t to = prop_up_to(r, MAX_REPLICAS);
	fit_order_write(&c->order, c->spec, to, c->now_ms);
	c->writes[c->n_writes++ % WRITES_MAX].at_ms = c->now_ms;
	c->writes[(c->n_writes - 1) % WRITES_MAX].added = to > c->spec ? to - c->spec : 0;
	if (prop_chance(r, 80))
		c->spec = to; // else it was refused, or its answer was lost
	if (prop_chance(r, 80))
		fit_order_end(&c->order);
}

// The controller puts off a write, and decides again.
static void defer_write(struct claimant *c, struct prop_random *r)
{
	struct fit_order before = c->order, after;
	fit_order_write(&c->order, c->spec, prop_up_to(r, MAX_REPLICAS), c->now_ms);
	if (prop_chance(r, 50))
		fit_order_count(&c->order, c->spec, c->status, c->now_ms);
	fit_order_cancel(&c->order);
	after = c->order;
	int64_t wanted = fit_order_count(&before, c->spec, c->status, c->now_ms);
	int64_t room = fit_order_count(&after, c->spec, c->status, c->now_ms);
	if (room != wanted)
		fail_msg("a write that was never sent changes nothing: %lld, before %lld, seed %llu", (long long)room,
		         (long long)wanted, (unsigned long long)prop_seed());
}

static int64_t added_recently(const struct claimant *c)
{
	int64_t sum = 0;
	for (size_t i = 0; i < WRITES_MAX && i < c->n_writes; i++)
		sum += c->now_ms - c->writes[i].at_ms < FIT_ORDER_MS ? c->writes[i].added : 0;
	return sum;
}

static void reservations_are_own_recent_writes(void **state)
{
	struct prop_random r = {prop_seed() + 34};
	int64_t n = prop_ticks(), reserved = 0, claimed = 0;
	struct claimant c = {.now_ms = 1};
	fit_order_init(&c.order);
	for (int64_t done = 0; done < n; done++) {
		int32_t step_ms = 1000 * prop_up_to(&r, 30);
		c.now_ms += prop_chance(&r, 1) ? 2 * FIT_ORDER_REST_MS : step_ms;
		if (prop_chance(&r, 30))
			c.spec = prop_chance(&r, 50) ? 1000000 : prop_up_to(&r, MAX_REPLICAS);
		if (prop_chance(&r, 30))
			c.status = prop_chance(&r, 30) ? c.spec
			                               : prop_up_to(&r, c.spec < MAX_REPLICAS ? c.spec : MAX_REPLICAS);
		if (prop_chance(&r, 20))
			write_scale(&c, &r);
		if (prop_chance(&r, 10))
			defer_write(&c, &r);
		bool was_complete = c.order.now.to > c.order.now.from && c.status >= c.order.now.to;
		int64_t room = fit_order_count(&c.order, c.spec, c.status, c.now_ms);
		if (room < 0 || room > MAX_REPLICAS)
			fail_msg("a reservation is at most maxReplicas: %lld, seed %llu", (long long)room,
			         (unsigned long long)prop_seed());
		if (was_complete || c.now_ms - c.last_ms >= FIT_ORDER_REST_MS)
			c.reserved_ms = 0;
		if (room > 0) {
			if (c.reserved_ms == 0)
				c.reserved_ms = c.now_ms;
			if (c.now_ms - c.reserved_ms >= FIT_ORDER_MS)
				fail_msg("no reservation outlasts its time, seed %llu",
				         (unsigned long long)prop_seed());
			c.last_ms = c.now_ms;
		}
		if (room > added_recently(&c))
			fail_msg("a reservation is what was written: %lld, %lld were added, seed %llu", (long long)room,
			         (long long)added_recently(&c), (unsigned long long)prop_seed());
		reserved += room > 0;
		claimed += c.spec > c.status && room == 0;
	}
	assert_true(reserved > n / 1000 && claimed > n / 10);
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(fixed_orders_no_more_than_fits),
	        cmocka_unit_test(unknown_capacity_changes_nothing),
	        cmocka_unit_test(only_what_waited_long_enough_is_withdrawn),
	        cmocka_unit_test(reservations_are_own_recent_writes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
