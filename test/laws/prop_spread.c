// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the allocator of variants. It finds what trying every spread finds, stays inside the
// bounds whatever the numbers are, is within 2 % of a bound when it ends early, keeps replicas where costs tie, and
// never moves one back and forth while the world stands still.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policies/spread/spread.h"
#include "test/laws/prop.h"

#define TRIED_MAX 2000000 // spreads that brute force tries in one instance
#define CLOSE     1e-7

struct instance {
	struct spread_variant variants[SPREAD_VARIANTS_MAX];
	struct spread_request request;
	int32_t least[SPREAD_VARIANTS_MAX], most[SPREAD_VARIANTS_MAX];
};

static double any_price(struct prop_random *r)
{
	return prop_chance(r, 10) ? prop_up_to(r, 3) : 0.25 + prop_up_to(r, 1500) / 100.0;
}

// Up to `n_max` variants of up to `replicas` replicas each. Some have equal prices, no room, or a min above their room.
static void any_instance(struct prop_random *r, struct instance *x, int32_t n_max, int32_t replicas)
{
	double room = 0;
	*x = (struct instance){0};
	x->request.variants = x->variants;
	x->request.n_variants = (size_t)(1 + prop_up_to(r, n_max - 1));
	x->request.switch_cost = prop_chance(r, 30) ? 0 : prop_up_to(r, 300) / 100.0;
	for (size_t i = 0; i < x->request.n_variants; i++) {
		struct spread_variant *v = &x->variants[i];
		v->capacity = prop_chance(r, 30) ? 1 + prop_up_to(r, 9) : 0.3 + prop_up_to(r, 5000) / 100.0;
		v->price = any_price(r);
		v->max = prop_up_to(r, replicas);
		v->min = prop_chance(r, 60) ? 0 : prop_up_to(r, v->max);
		v->current = prop_up_to(r, replicas);
		v->fit = prop_chance(r, 20) ? 0 : prop_up_to(r, replicas);
		x->most[i] = v->current + v->fit < v->max ? v->current + v->fit : v->max;
		x->least[i] = v->min < x->most[i] ? v->min : x->most[i];
		room += v->capacity * x->most[i];
	}
	x->request.units = room * prop_up_to(r, 1100) / 1000.0;
}

static double cost_of(const struct instance *x, const int32_t *n)
{
	double cost = 0;
	for (size_t i = 0; i < x->request.n_variants; i++) {
		const struct spread_variant *v = &x->variants[i];
		cost += v->price * n[i] + x->request.switch_cost * (n[i] > v->current ? n[i] - v->current : 0);
	}
	return cost;
}

static double units_of(const struct instance *x, const int32_t *n)
{
	double units = 0;
	for (size_t i = 0; i < x->request.n_variants; i++)
		units += x->variants[i].capacity * n[i];
	return units;
}

// The least cost of all spreads that serve the units; INFINITY when none does. The last variant takes what is missing.
static double brute_force(const struct instance *x)
{
	int32_t n[SPREAD_VARIANTS_MAX];
	size_t last = x->request.n_variants - 1;
	double best = INFINITY;
	for (size_t i = 0; i <= last; i++)
		n[i] = x->least[i];
	for (;;) {
		n[last] = x->least[last];
		while (n[last] < x->most[last] && units_of(x, n) < x->request.units * (1 - 1e-9))
			n[last]++;
		if (units_of(x, n) >= x->request.units * (1 - 1e-9))
			best = fmin(best, cost_of(x, n));
		size_t i = 0;
		while (i < last && n[i] == x->most[i]) {
			n[i] = x->least[i];
			i++;
		}
		if (i == last)
			return best;
		n[i]++;
	}
}

static double tried(const struct instance *x)
{
	double product = 1;
	for (size_t i = 0; i < x->request.n_variants; i++)
		product *= x->most[i] - x->least[i] + 1;
	return product;
}

static void break_law(const char *law, const struct instance *x, double expected, double found)
{
	fprintf(stderr, "units %.17g, switch cost %.17g: expected %.17g, found %.17g\n", x->request.units,
	        x->request.switch_cost, expected, found);
	for (size_t i = 0; i < x->request.n_variants; i++) {
		const struct spread_variant *v = &x->variants[i];
		fprintf(stderr, "  capacity %.17g price %.17g current %d min %d max %d fit %d\n", v->capacity, v->price,
		        v->current, v->min, v->max, v->fit);
	}
	fail_msg("%s", law);
}

// Bounds, and the totals that the result states.
static void check(const struct instance *x, const struct spread_share *shares, const struct spread_total *total)
{
	int32_t n[SPREAD_VARIANTS_MAX];
	double most = 0;
	for (size_t i = 0; i < x->request.n_variants; i++) {
		n[i] = shares[i].replicas;
		most += x->variants[i].capacity * x->most[i];
		if (n[i] < x->least[i] || n[i] > x->most[i])
			break_law("a share is outside of its bounds", x, x->most[i], n[i]);
	}
	if (fabs(total->cost - cost_of(x, n)) > CLOSE * (1 + total->cost))
		break_law("the cost is not that of the shares", x, cost_of(x, n), total->cost);
	if (total->is_short && most > x->request.units * (1 + CLOSE))
		break_law("a spread falls short of what the variants can serve", x, most, total->units);
	if (total->is_short && fabs(total->units - most) > CLOSE * (1 + most))
		break_law("a spread that falls short serves less than it could", x, most, total->units);
	if (!total->is_short && total->units < x->request.units * (1 - CLOSE))
		break_law("a spread serves less than it says", x, x->request.units, total->units);
}

static void equals_brute_force(void **state)
{
	struct prop_random r = {prop_seed() + 1};
	struct instance x;
	int64_t n = prop_ticks() / 100, done = 0;
	while (done < n) {
		struct spread_share shares[SPREAD_VARIANTS_MAX];
		struct spread_total total;
		any_instance(&r, &x, 6, prop_chance(&r, 50) ? 6 : 40);
		if (tried(&x) > TRIED_MAX / 10 && !(done % 50 == 0 && tried(&x) <= TRIED_MAX))
			continue;
		spread(&x.request, shares, &total);
		check(&x, shares, &total);
		double least = brute_force(&x);
		if (isinf(least) != total.is_short)
			break_law("a spread falls short when another does not, or the reverse", &x, least, total.cost);
		if (!total.is_short && fabs(total.cost - least) > CLOSE * (1 + least))
			break_law("a cheaper spread exists", &x, least, total.cost);
		if (!total.is_exact)
			break_law("a small search ended early", &x, least, total.cost);
		done++;
	}
}

// Least cost when replicas are divisible: no spread is cheaper.
static double relaxed_cost(const struct instance *x)
{
	double units = x->request.units, cost = 0, left[2 * SPREAD_VARIANTS_MAX], slope[2 * SPREAD_VARIANTS_MAX];
	size_t n = 0;
	for (size_t i = 0; i < x->request.n_variants; i++) {
		const struct spread_variant *v = &x->variants[i];
		int32_t first = v->current < x->most[i] ? v->current : x->most[i];
		first = first > x->least[i] ? first - x->least[i] : 0;
		units -= v->capacity * x->least[i];
		cost += v->price * x->least[i] +
		        x->request.switch_cost * (x->least[i] > v->current ? x->least[i] - v->current : 0);
		left[n] = first * v->capacity, slope[n++] = v->price / v->capacity;
		left[n] = (x->most[i] - x->least[i] - first) * v->capacity;
		slope[n++] = (v->price + x->request.switch_cost) / v->capacity;
	}
	while (units > 0) {
		size_t best = n;
		for (size_t i = 0; i < n; i++)
			if (left[i] > 0 && (best == n || slope[i] < slope[best]))
				best = i;
		if (best == n)
			return INFINITY;
		double used = fmin(left[best], units);
		cost += used * slope[best], units -= used, left[best] = 0;
	}
	return cost;
}

static void is_near_the_bound_beyond(void **state)
{
	struct prop_random r = {prop_seed() + 2};
	struct instance x;
	for (int64_t i = 0; i < prop_ticks() / 100; i++) {
		struct spread_share shares[SPREAD_VARIANTS_MAX];
		struct spread_total total;
		double dearest = 0;
		any_instance(&r, &x, SPREAD_VARIANTS_MAX, prop_chance(&r, 50) ? 400 : 100000);
		spread(&x.request, shares, &total);
		check(&x, shares, &total);
		for (size_t k = 0; k < x.request.n_variants; k++)
			dearest = fmax(dearest, x.variants[k].price + x.request.switch_cost);
		double bound = relaxed_cost(&x);
		if (!total.is_short && total.cost > bound * 1.02 + dearest)
			break_law("a spread costs more than 2 % and one replica above the bound", &x, bound,
			          total.cost);
	}
}

// When the spread has been carried out, the same question moves nothing, with a switch cost or without.
static void replicas_stay_once_they_are_spread(void **state)
{
	struct prop_random r = {prop_seed() + 3};
	struct instance x;
	for (int64_t i = 0; i < prop_ticks() / 50; i++) {
		struct spread_share first[SPREAD_VARIANTS_MAX], second[SPREAD_VARIANTS_MAX];
		struct spread_total total;
		any_instance(&r, &x, 8, 40);
		spread(&x.request, first, &total);
		for (size_t k = 0; k < x.request.n_variants; k++) {
			struct spread_variant *v = &x.variants[k];
			v->fit = v->current + v->fit > first[k].replicas ? v->current + v->fit - first[k].replicas : 0;
			v->current = first[k].replicas;
		}
		spread(&x.request, second, &total);
		for (size_t k = 0; k < x.request.n_variants; k++)
			if (first[k].replicas != second[k].replicas)
				break_law("a replica moves although nothing changed", &x, first[k].replicas,
				          second[k].replicas);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(equals_brute_force),
	        cmocka_unit_test(is_near_the_bound_beyond),
	        cmocka_unit_test(replicas_stay_once_they_are_spread),
	};
	prop_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
