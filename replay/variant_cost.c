// SPDX-License-Identifier: Apache-2.0
#include "replay/variant_cost.h"

#include <math.h>

#include "replay/world.h"

#define MS_PER_HOUR 3600000.0

void variant_cost_init(struct variant_cost *c, const struct scale_variants *variants, const double *prices,
                       int64_t startup_ms)
{
	*c = (struct variant_cost){.variants = variants};
	for (size_t i = 0; i < variants->n; i++) {
		const struct scale_variant *v = &variants->items[i];
		c->now[i] = (struct variant_now){.capacity = v->capacity,
		                                 .price = prices[i],
		                                 .min = v->min_replicas,
		                                 .max = v->max_replicas,
		                                 .fit = VARIANT_NO_LIMIT,
		                                 .startup_ms = v->startup_ms ? v->startup_ms : startup_ms,
		                                 .grown_ms = INT64_MIN / 2};
	}
}

static void start(struct variant_starts *s, int64_t ready_ms, int32_t n)
{
	if (s->n == VARIANT_STARTS_MAX)
		s->ready_ms[--s->n] = ready_ms; // with those before them
	else
		s->replicas[s->n] = 0;
	s->ready_ms[s->n] = ready_ms;
	s->replicas[s->n++] += n;
}

// Removes replicas that start, the last ones first.
static void stop(struct variant_starts *s, int32_t n)
{
	while (n > 0 && s->n > 0) {
		int32_t gone = n < s->replicas[s->n - 1] ? n : s->replicas[s->n - 1];
		s->replicas[s->n - 1] -= gone;
		n -= gone;
		s->n -= s->replicas[s->n - 1] == 0;
	}
}

static int32_t starting(struct variant_starts *s, int64_t now_ms)
{
	size_t kept = 0;
	int32_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->ready_ms[i] > now_ms) {
			s->ready_ms[kept] = s->ready_ms[i];
			s->replicas[kept++] = s->replicas[i];
			n += s->replicas[i];
		}
	s->n = kept;
	return n;
}

// Cost of an hour of an autoscaler for which all replicas are alike.
static double alike_price(const struct variant_cost *c, double units)
{
	size_t n = c->variants->n;
	double weakest = INFINITY, cost = 0;
	int32_t left[VARIANTS_MAX];
	for (size_t i = 0; i < n; i++) {
		weakest = fmin(weakest, c->now[i].capacity);
		left[i] = c->now[i].max;
	}
	double wanted = ceil(units / weakest - 1e-9);
	for (size_t round = 0; round < n; round++) {
		size_t best = n;
		for (size_t i = 0; i < n; i++)
			if (left[i] >= 0 && (best == n || c->now[i].price < c->now[best].price))
				best = i;
		double used = fmin(fmax(wanted, c->now[best].min), left[best]);
		cost += used * c->now[best].price;
		wanted -= used;
		left[best] = -1;
	}
	return cost;
}

void variant_cost_add(struct variant_cost *c, const struct loop_step *step)
{
	struct variant_order orders[VARIANTS_MAX];
	struct spread_total total;
	double hours = (double)step->span_ms / MS_PER_HOUR;
	for (size_t i = 0; i < c->variants->n; i++)
		c->now[i].ready = c->now[i].current - starting(&c->starts[i], step->time_ms);
	variant_plan(c->now, c->variants->n, step->replicas, c->variants->switch_cost, step->time_ms, orders, &total);
	for (size_t i = 0; i < c->variants->n; i++) {
		struct variant_now *v = &c->now[i];
		int32_t change = orders[i].replicas - v->current;
		if (change > 0) {
			start(&c->starts[i], step->time_ms + v->startup_ms, change);
			v->grown_ms = step->time_ms;
			c->switches += change;
		} else {
			stop(&c->starts[i], -change);
		}
		v->current = orders[i].replicas;
		c->replica_s[i] += v->current * (double)step->span_ms / 1000;
		c->cost += v->current * v->price * hours;
	}
	c->alike_cost += alike_price(c, step->replicas) * hours;
	c->short_s += total.is_short ? (double)step->span_ms / 1000 : 0;
}
