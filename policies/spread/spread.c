// SPDX-License-Identifier: Apache-2.0
#include "policies/spread/spread.h"

#include <math.h>

#include "policies/engine/number.h"

#define SEGMENTS_MAX (2 * SPREAD_VARIANTS_MAX)
#define NODES_EXACT  20000  // then spreads that save less than ROUGH are no longer searched for
#define NODES_MAX    100000 // then the best spread found counts
#define ROUGH        0.01
#define ROUNDING     1e-9  // relative error of sums of units that is forgiven
#define MOVE         1e-10 // cost of moving a replica, as a share of the largest price: decides between equal costs

// Replicas of a variant that cost the same.
struct segment {
	size_t depth; // position of the variant in the order of the search
	double per_unit, units;
};

// A variant as the search sees it: `n` counts from `least`.
struct item {
	size_t variant;
	int32_t least, most, first; // replicas; `first` are in the first segment
	double capacity, slope[2];  // cost of one more replica in each segment
};

struct search {
	struct item items[SPREAD_VARIANTS_MAX]; // largest capacity first, so that the last one fits closely
	size_t n_items;
	struct segment segments[SEGMENTS_MAX]; // cheapest unit first
	size_t n_segments;
	double room[SPREAD_VARIANTS_MAX + 1]; // units that items[depth..] can add
	double slack;                         // units that may be missing, by rounding
	double best;
	int32_t n[SPREAD_VARIANTS_MAX], best_n[SPREAD_VARIANTS_MAX];
	long nodes;
};

const char *const spread_reason_names[] = {"Kept",        "Cheapest",    "SpillOver",      "ScaledDown",
                                           "MinReplicas", "MaxReplicas", "CapacityLimited"};
_Static_assert(sizeof spread_reason_names / sizeof spread_reason_names[0] == SPREAD_REASON__COUNT, "one per reason");

static int32_t most_of(const struct spread_variant *v)
{
	int64_t fits = (int64_t)v->current + v->fit;
	return fits < v->max ? (int32_t)fits : v->max;
}

static double item_cost(const struct item *it, int32_t n)
{
	int32_t first = n < it->first ? n : it->first;
	return it->slope[0] * first + it->slope[1] * (n - first);
}

// Least cost of `units` more from items[depth..], replicas being divisible. *ret_n: what items[depth] contributes.
static double relaxed(const struct search *s, size_t depth, double units, double *ret_n)
{
	double cost = 0;
	*ret_n = 0;
	for (size_t i = 0; i < s->n_segments && units > 0; i++) {
		const struct segment *g = &s->segments[i];
		if (g->depth < depth)
			continue;
		double used = g->units < units ? g->units : units;
		cost += used * g->per_unit;
		units -= used;
		if (g->depth == depth)
			*ret_n += used / s->items[depth].capacity;
	}
	return cost;
}

static int32_t replicas_for(const struct search *s, const struct item *it, double units)
{
	double n = ceil((units - s->slack) / it->capacity);
	return n <= 0 ? 0 : n >= it->most - it->least ? it->most - it->least : (int32_t)n;
}

static void keep(struct search *s, size_t depth, double cost)
{
	if (cost >= s->best)
		return;
	s->best = cost;
	for (size_t i = 0; i < s->n_items; i++)
		s->best_n[i] = i < depth ? s->n[i] : 0;
}

// Whether a spread of at least `bound` is not worth a search.
static bool is_cut(const struct search *s, double bound)
{
	double goal = s->nodes <= NODES_EXACT ? s->best : s->best * (1 - ROUGH);
	return bound >= goal || s->nodes > NODES_MAX;
}

static void descend(struct search *s, size_t depth, double units, double cost);

// Tries n replicas of items[depth]; false when neither n nor, as the bound is convex, anything beyond it can be better.
static bool try(struct search *s, size_t depth, int32_t n, double units, double cost)
{
	const struct item *it = &s->items[depth];
	double left = units - it->capacity * n, so_far = cost + item_cost(it, n), unused;
	if (left > s->room[depth + 1] + s->slack)
		return false;
	if (is_cut(s, so_far + relaxed(s, depth + 1, left, &unused)))
		return false;
	s->n[depth] = n;
	descend(s, depth + 1, left, so_far);
	return true;
}

// Serves `units` more with items[depth..]; what the items before it cost is `cost`.
static void descend(struct search *s, size_t depth, double units, double cost)
{
	s->nodes++;
	if (units <= s->slack) {
		keep(s, depth, cost);
		return;
	}
	if (depth == s->n_items || units > s->room[depth] + s->slack)
		return;
	const struct item *it = &s->items[depth];
	int32_t needed = replicas_for(s, it, units);
	double fraction;
	relaxed(s, depth, units, &fraction);
	int32_t middle = (int32_t)fraction < needed ? (int32_t)fraction : needed;
	for (int32_t n = middle + 1; n <= needed && try(s, depth, n, units, cost); n++)
		;
	for (int32_t n = middle; n >= 0 && try(s, depth, n, units, cost); n--)
		;
}

static void sort_items(struct search *s)
{
	for (size_t i = 1; i < s->n_items; i++)
		for (size_t j = i; j > 0 && s->items[j].capacity > s->items[j - 1].capacity; j--) {
			struct item t = s->items[j];
			s->items[j] = s->items[j - 1];
			s->items[j - 1] = t;
		}
}

static void add_segment(struct search *s, size_t depth, int32_t n, double slope)
{
	const struct item *it = &s->items[depth];
	if (n <= 0)
		return;
	struct segment g = {depth, slope / it->capacity, n * it->capacity};
	size_t at = s->n_segments++;
	for (; at > 0 && s->segments[at - 1].per_unit > g.per_unit; at--)
		s->segments[at] = s->segments[at - 1];
	s->segments[at] = g;
}

// Returns the units that are missing when each variant has its least replicas of each variant.
static double set_up(struct search *s, const struct spread_request *q)
{
	double units = q->units, largest = 0;
	for (size_t i = 0; i < q->n_variants; i++)
		largest = fmax(largest, q->variants[i].price + q->switch_cost);
	for (size_t i = 0; i < q->n_variants; i++) {
		const struct spread_variant *v = &q->variants[i];
		double move = MOVE * largest;
		struct item it = {.variant = i,
		                  .least = i32_min(v->min, most_of(v)),
		                  .most = most_of(v),
		                  .capacity = v->capacity};
		it.first = v->current <= it.least ? 0 : (v->current < it.most ? v->current : it.most) - it.least;
		it.slope[0] = fmax(v->price - move, 0);
		it.slope[1] = v->price + q->switch_cost + move;
		units -= v->capacity * it.least;
		s->items[s->n_items++] = it;
	}
	sort_items(s);
	for (size_t d = s->n_items; d-- > 0;) {
		const struct item *it = &s->items[d];
		s->room[d] = s->room[d + 1] + it->capacity * (it->most - it->least);
		add_segment(s, d, it->first, it->slope[0]);
		add_segment(s, d, it->most - it->least - it->first, it->slope[1]);
	}
	s->slack = ROUNDING * q->units;
	return units;
}

static double price_per_unit(const struct spread_variant *v)
{
	return v->price / v->capacity;
}

static bool is_cheaper_full(const struct spread_request *q, const struct spread_share *shares, size_t i)
{
	for (size_t k = 0; k < q->n_variants; k++)
		if (price_per_unit(&q->variants[k]) < price_per_unit(&q->variants[i]) &&
		    shares[k].replicas >= most_of(&q->variants[k]))
			return true;
	return false;
}

static enum spread_reason reason_of(const struct spread_request *q, const struct spread_share *shares, size_t i)
{
	const struct spread_variant *v = &q->variants[i];
	int32_t n = shares[i].replicas;
	if (n < v->min || (n >= most_of(v) && n < v->max && n > v->min))
		return SPREAD_CAPACITY_LIMITED;
	if (n == v->min && n <= v->current)
		return SPREAD_AT_MIN;
	if (n == v->max)
		return SPREAD_AT_MAX;
	if (n == v->current)
		return SPREAD_KEPT;
	if (n < v->current)
		return SPREAD_REDUCED;
	return is_cheaper_full(q, shares, i) ? SPREAD_SPILL_OVER : SPREAD_CHEAPEST;
}

void spread(const struct spread_request *request, struct spread_share *shares, struct spread_total *ret_total)
{
	struct search s = {.best = INFINITY};
	double units = set_up(&s, request);
	bool is_short = units > s.room[0] + s.slack;
	if (!is_short)
		descend(&s, 0, units, 0);
	*ret_total = (struct spread_total){.is_short = is_short, .is_exact = s.nodes <= NODES_EXACT};
	for (size_t i = 0; i < s.n_items; i++) {
		const struct item *it = &s.items[i];
		const struct spread_variant *v = &request->variants[it->variant];
		int32_t n = is_short ? it->most : it->least + s.best_n[i];
		shares[it->variant].replicas = n;
		ret_total->units += v->capacity * n;
		ret_total->cost += v->price * n + request->switch_cost * (n > v->current ? n - v->current : 0);
	}
	for (size_t i = 0; i < request->n_variants; i++)
		shares[i].reason = reason_of(request, shares, i);
}

// ---- the plan of a policy with variants ----

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
	return i32_min(v->current - v->unschedulable, v->max);
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
		int32_t lost = ready_of(v) - i32_min(ready_of(v), o->share); // ready replicas go last
		int32_t may = spare <= 0 ? 0 : spare >= lost ? lost : (int32_t)spare;
		o->replicas = i32_min(o->share + (lost - may), v->max > o->share ? v->max : o->share);
		ready -= v->capacity * may;
	}
}

// The bounds of the spread may be those of young replicas.
static enum spread_reason plan_reason_of(const struct variant_now *v, const struct spread_share *share)
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
		                                   plan_reason_of(&variants[i], &shares[i])};
	shrink(variants, n, units, orders);
}
