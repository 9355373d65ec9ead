// SPDX-License-Identifier: Apache-2.0
#include "policies/spread/variant_plan.h"

#include <math.h>

#define ROUNDING 1e-9 // relative error of sums of units that is forgiven

static int32_t i32_least(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

static int32_t ready_of(const struct variant_now *v)
{
	return v->ready < 0 || v->ready > v->current ? v->current : v->ready;
}

int32_t variant_units(const struct variant_now *variants, const int32_t *replicas, size_t n)
{
	double units = 0;
	for (size_t i = 0; i < n; i++)
		units += variants[i].capacity * replicas[i];
	bool serves = units > 0;
	units = floor(units * (1 + ROUNDING));
	if (units < 1)
		return serves ? 1 : 0;
	return units < SPREAD_REPLICAS_MAX ? (int32_t)units : SPREAD_REPLICAS_MAX;
}

static bool is_young(const struct variant_now *v, int64_t now_ms)
{
	return v->current > 0 && now_ms - v->grown_ms < v->startup_ms;
}

// The replicas that may not leave variant i: none can where the scheduler has no room for it.
static int32_t kept(const struct variant_now *v)
{
	return i32_least(v->current - v->unschedulable, v->max);
}

// Fills the variants of the request. Returns whether the young replicas serve more than the units, and may go.
static bool prepare(const struct variant_now *variants, size_t n, double units, int64_t now_ms,
                    struct spread_variant *ret)
{
	double least = 0;
	bool any = false;
	for (size_t i = 0; i < n; i++) {
		const struct variant_now *v = &variants[i];
		ret[i] = (struct spread_variant){v->capacity, v->price, v->current - v->unschedulable,
		                                 v->min,      v->max,   v->unschedulable > 0 ? 0 : v->fit};
		if (v->is_fixed) {
			ret[i].current = ret[i].min = ret[i].max = v->current;
			ret[i].fit = 0;
		} else if (is_young(v, now_ms) && kept(v) > v->min) {
			ret[i].min = kept(v);
			any = true;
		}
		least += v->capacity * ret[i].min;
	}
	return any && least > units * (1 + ROUNDING);
}

// Fewer units are needed than the young replicas serve.
static void release_young(const struct variant_now *variants, size_t n, struct spread_variant *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (!variants[i].is_fixed)
			ret[i].min = variants[i].min;
		if (ret[i].current >= ret[i].min)
			ret[i].fit = 0;
	}
}

// Shrinks variants, the dearest unit first, as far as the ready replicas that stay serve the units.
static void shrink(const struct variant_now *variants, size_t n, double units, struct variant_order *orders)
{
	double ready = 0;
	bool done[SPREAD_VARIANTS_MAX] = {false};
	for (size_t i = 0; i < n; i++)
		ready += variants[i].capacity * ready_of(&variants[i]);
	for (size_t round = 0; round < n; round++) {
		size_t next = n;
		for (size_t i = 0; i < n; i++)
			if (!done[i] && (next == n || variants[i].price / variants[i].capacity >
			                                      variants[next].price / variants[next].capacity))
				next = i;
		const struct variant_now *v = &variants[next];
		struct variant_order *o = &orders[next];
		done[next] = true;
		if (o->share >= v->current)
			continue;
		double spare = floor((ready - units) / v->capacity * (1 + ROUNDING) + ROUNDING);
		int32_t lost = ready_of(v) - i32_least(ready_of(v), o->share); // ready replicas go last
		int32_t may = spare <= 0 ? 0 : spare >= lost ? lost : (int32_t)spare;
		o->replicas = i32_least(o->share + (lost - may), v->max > o->share ? v->max : o->share);
		ready -= v->capacity * may;
	}
}

// The bounds of the spread may be those of young replicas.
static enum spread_reason reason_of(const struct variant_now *v, const struct spread_share *share)
{
	bool is_at_min = share->reason == SPREAD_AT_MIN && share->replicas > v->min;
	bool has_room = share->reason == SPREAD_CAPACITY_LIMITED && v->unschedulable == 0 && v->fit > 0 &&
	                share->replicas == v->current;
	if (!is_at_min && !has_room)
		return share->reason;
	return v->unschedulable > 0 ? SPREAD_CAPACITY_LIMITED : SPREAD_KEPT;
}

void variant_plan(const struct variant_now *variants, size_t n, double units, double switch_cost, int64_t now_ms,
                  struct variant_order *orders, struct spread_total *ret_total)
{
	struct spread_variant prepared[SPREAD_VARIANTS_MAX];
	struct spread_share shares[SPREAD_VARIANTS_MAX];
	if (prepare(variants, n, units, now_ms, prepared))
		release_young(variants, n, prepared);
	const struct spread_request request = {prepared, n, units, switch_cost};
	spread(&request, shares, ret_total);
	for (size_t i = 0; i < n; i++)
		orders[i] = (struct variant_order){shares[i].replicas, shares[i].replicas,
		                                   reason_of(&variants[i], &shares[i])};
	shrink(variants, n, units, orders);
}
