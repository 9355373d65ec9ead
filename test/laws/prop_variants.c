// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the plan for the targets of variants, over random loads, rooms and starts. No replica
// moves twice within its start-up time; replicas leave only when those that replace them are ready; what the variants
// serve is what was asked for, in the same plan in which a variant has no room; and a plan that was carried out moves
// nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policies/spread/spread.h"
#include "test/laws/prop.h"

#define N_MAX       5
#define REPLICAS    20
#define INTERVAL_MS 15000
#define STARTS_MAX  64
#define CLOSE       1e-6

// A variant with the time at which each of its replicas becomes ready.
struct world {
	struct variant_now now[N_MAX];
	size_t n;
	int64_t ready_ms[N_MAX][STARTS_MAX]; // of each replica, those that start last at the end
	int64_t now_ms;
	double units, switch_cost;
};

static void any_world(struct prop_random *r, struct world *w)
{
	*w = (struct world){.n = (size_t)(1 + prop_up_to(r, N_MAX - 1)), .now_ms = 1000000000};
	w->switch_cost = prop_chance(r, 60) ? 0 : prop_up_to(r, 200) / 100.0;
	for (size_t i = 0; i < w->n; i++) {
		struct variant_now *v = &w->now[i];
		v->capacity = prop_chance(r, 50) ? 1 + prop_up_to(r, 4) : 0.5 + prop_up_to(r, 400) / 100.0;
		v->price = prop_up_to(r, 1000) / 100.0;
		v->max = 1 + prop_up_to(r, REPLICAS - 1);
		v->min = prop_chance(r, 70) ? 0 : prop_up_to(r, v->max);
		v->current = prop_up_to(r, v->max);
		v->ready = v->current;
		v->startup_ms = prop_chance(r, 10) ? 0 : (1 + prop_up_to(r, 40)) * (int64_t)INTERVAL_MS;
		v->fit = VARIANT_NO_LIMIT;
	}
}

static double units_of(const struct world *w, int32_t (*of)(const struct variant_now *v, const struct variant_order *o),
                       const struct variant_order *orders)
{
	double units = 0;
	for (size_t i = 0; i < w->n; i++)
		units += w->now[i].capacity * of(&w->now[i], orders ? &orders[i] : NULL);
	return units;
}

static int32_t ready_now(const struct variant_now *v, const struct variant_order *o)
{
	return v->ready;
}

// Replicas that are not ready go first.
static int32_t ready_then(const struct variant_now *v, const struct variant_order *o)
{
	return o->replicas < v->ready ? o->replicas : v->ready;
}

static int32_t share(const struct variant_now *v, const struct variant_order *o)
{
	return o->share;
}

static int32_t most(const struct variant_now *v, const struct variant_order *o)
{
	int64_t room = v->unschedulable > 0 ? v->current - v->unschedulable : (int64_t)v->current + v->fit;
	return v->is_fixed ? v->current : room < v->max ? (int32_t)room : v->max;
}

static void break_law(const char *law, const struct world *w, const struct variant_order *orders)
{
	fprintf(stderr, "units %.17g, switch cost %.17g\n", w->units, w->switch_cost);
	for (size_t i = 0; i < w->n; i++) {
		const struct variant_now *v = &w->now[i];
		fprintf(stderr,
		        "  capacity %g price %g min %d max %d current %d ready %d fit %d unschedulable %d fixed %d "
		        "grown %lld s ago of %lld -> %d, share %d\n",
		        v->capacity, v->price, v->min, v->max, v->current, v->ready, v->fit, v->unschedulable,
		        v->is_fixed, (long long)(w->now_ms - v->grown_ms) / 1000, (long long)v->startup_ms / 1000,
		        orders[i].replicas, orders[i].share);
	}
	fail_msg("%s", law);
}

static void check_moves(const struct world *w, const struct variant_order *orders)
{
	bool grows = false, young_leave = false;
	for (size_t i = 0; i < w->n; i++) {
		const struct variant_now *v = &w->now[i];
		int32_t kept = v->current - v->unschedulable;
		bool is_young = w->now_ms - v->grown_ms < v->startup_ms;
		young_leave |= is_young && orders[i].share < kept && orders[i].share < v->max;
		grows |= orders[i].share > v->current && orders[i].share > v->min;
		if (v->is_fixed && orders[i].replicas != v->current)
			break_law("a variant that could not be read changes", w, orders);
		if (orders[i].replicas < orders[i].share)
			break_law("fewer replicas are written than the share", w, orders);
		if (!v->is_fixed && orders[i].replicas > v->max && orders[i].replicas > most(v, NULL))
			break_law("a variant exceeds its bound", w, orders);
	}
	if (grows && young_leave)
		break_law("a replica moves again within its start-up time", w, orders);
}

static void check_served(const struct world *w, const struct variant_order *orders, const struct spread_total *total)
{
	double before = units_of(w, ready_now, NULL), after = units_of(w, ready_then, orders);
	bool is_bounded = false; // the bound of a variant takes precedence
	for (size_t i = 0; i < w->n; i++)
		is_bounded |= w->now[i].current > w->now[i].max;
	if (!is_bounded && after < (before < w->units ? before : w->units) - CLOSE)
		break_law("ready replicas leave before those that replace them are ready", w, orders);
	double served = units_of(w, share, orders);
	if (!total->is_short && served < w->units - CLOSE)
		break_law("the shares serve less than was asked for", w, orders);
	if (total->is_short && units_of(w, most, NULL) > w->units + CLOSE)
		break_law("the variants could serve more", w, orders);
}

static void start_and_stop(struct world *w, size_t i, int32_t replicas, int64_t takes_ms)
{
	struct variant_now *v = &w->now[i];
	if (replicas > v->current)
		v->grown_ms = w->now_ms;
	for (; v->current < replicas; v->current++)
		w->ready_ms[i][v->current] = w->now_ms + takes_ms;
	v->current = replicas;
	v->ready = 0;
	for (int32_t k = 0; k < v->current; k++)
		v->ready += w->ready_ms[i][k] <= w->now_ms;
}

// The next tick: other loads, other rooms; replicas start, and not always in time.
static void advance(struct prop_random *r, struct world *w, const struct variant_order *orders)
{
	w->now_ms += INTERVAL_MS;
	for (size_t i = 0; i < w->n; i++) {
		struct variant_now *v = &w->now[i];
		bool is_lost = v->is_fixed || prop_chance(r, 2); // the write failed
		start_and_stop(w, i, is_lost ? v->current : orders[i].replicas,
		               prop_chance(r, 90) ? v->startup_ms : 4 * v->startup_ms);
		v->is_fixed = prop_chance(r, 2);
		v->fit = prop_chance(r, 60) ? VARIANT_NO_LIMIT : prop_up_to(r, 3);
		v->unschedulable = prop_chance(r, 90) ? 0 : prop_up_to(r, v->current - v->ready);
	}
	if (prop_chance(r, 20))
		w->units = prop_up_to(r, 40);
}

static void moves_are_few_and_leave_no_gap(void **state)
{
	struct prop_random r = {prop_seed() + 1};
	struct world w = {0};
	for (int64_t tick = 0; tick < prop_ticks() / 10; tick++) {
		struct variant_order orders[N_MAX];
		struct spread_total total;
		if (tick % PROP_TICKS_A_TRACE == 0)
			any_world(&r, &w);
		variant_plan(w.now, w.n, w.units, w.switch_cost, w.now_ms, orders, &total);
		check_moves(&w, orders);
		check_served(&w, orders, &total);
		advance(&r, &w, orders);
	}
}

// Time passes, and nothing else: once all replicas are ready and old, a plan that was carried out is the last one.
static void rest_stays(void **state)
{
	struct prop_random r = {prop_seed() + 2};
	for (int64_t i = 0; i < prop_ticks() / 100; i++) {
		struct variant_order first[N_MAX], second[N_MAX];
		struct spread_total total;
		struct world w;
		any_world(&r, &w);
		w.units = prop_up_to(&r, 40);
		for (int round = 0; round < 3; round++) {
			variant_plan(w.now, w.n, w.units, w.switch_cost, w.now_ms, first, &total);
			for (size_t k = 0; k < w.n; k++)
				start_and_stop(&w, k, first[k].replicas, 0);
			w.now_ms += INT64_C(3600000);
		}
		variant_plan(w.now, w.n, w.units, w.switch_cost, w.now_ms, second, &total);
		for (size_t k = 0; k < w.n; k++)
			if (second[k].replicas != w.now[k].current || second[k].share != w.now[k].current)
				break_law("a replica moves although nothing changed", &w, second);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(moves_are_few_and_leave_no_gap),
	        cmocka_unit_test(rest_stays),
	};
	prop_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
