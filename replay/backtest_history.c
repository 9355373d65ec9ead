// SPDX-License-Identifier: Apache-2.0
#include "replay/backtest_history.h"

#include <math.h>
#include <string.h>

#include "replay/recording.h"
#include "replay/world.h"

void track_init(struct track *t, int64_t from_ms, int64_t to_ms)
{
	memset(t, 0, sizeof *t);
	t->from_ms = from_ms;
	t->to_ms = to_ms;
}

void track_add(struct track *t, int64_t time_ms, double value)
{
	if (time_ms < t->from_ms || time_ms >= t->to_ms)
		return;
	size_t i = (size_t)((time_ms - t->from_ms) * TRACK_SPANS / (t->to_ms - t->from_ms));
	float v = (float)value;
	if (isnan(value)) {
		if (t->state[i] == TRACK_EMPTY)
			t->state[i] = TRACK_GAP;
		return;
	}
	bool is_first = t->state[i] != TRACK_VALUE;
	t->state[i] = TRACK_VALUE;
	t->low[i] = is_first || v < t->low[i] ? v : t->low[i];
	t->high[i] = is_first || v > t->high[i] ? v : t->high[i];
	t->last[i] = v;
}

size_t track_points(const struct track *t, double *x, double *y)
{
	size_t n = 0;
	double last = NAN;
	for (size_t i = 0; i < TRACK_SPANS; i++) {
		double at = (double)t->from_ms + (double)(t->to_ms - t->from_ms) * (double)i / TRACK_SPANS;
		if (t->state[i] == TRACK_EMPTY)
			continue; // the last value remains
		if (t->state[i] == TRACK_GAP) {
			if (!isnan(last)) {
				x[n] = at;
				y[n++] = last = NAN;
			}
			continue;
		}
		// The far end first: the line goes there, across to the other end, and back to the last value.
		const double values[] = {(double)t->high[i], (double)t->low[i], (double)t->last[i]};
		for (int k = 0; k < 3; k++)
			if (values[k] != last) {
				x[n] = at;
				y[n++] = last = values[k];
			}
	}
	if (n == 0)
		return 0;
	x[n] = (double)t->to_ms;
	y[n++] = last;
	return n;
}

#define MINUTE_MS 60000

void backtest_history_init(struct backtest_history *h, const struct recording *recording)
{
	size_t last = recording->n_rows - 1;
	memset(h, 0, sizeof *h);
	h->from_ms = recording->time_ms[0];
	h->to_ms = recording->time_ms[last] + recording_hold_ms(recording, last);
	track_init(&h->demand, h->from_ms, h->to_ms);
}

// ---- the worst ten minutes ----

static void close_minute(struct history_window *w)
{
	double late = 0;
	int32_t low = INT32_MAX, high = INT32_MIN;
	for (int i = 0; i < HISTORY_WINDOW_MIN && i <= w->minute; i++) {
		late += w->late[i];
		low = w->low[i] < low ? w->low[i] : low;
		high = w->high[i] > high ? w->high[i] : high;
	}
	if (late > w->most_late) {
		w->most_late = late;
		w->latest_minute = w->minute;
	}
	if (high - low > w->most_change) {
		w->most_change = high - low;
		w->change_minute = w->minute;
	}
}

// A minute without steps has the replicas of the one before it.
static void next_minute(struct history_window *w)
{
	w->minute++;
	size_t i = (size_t)(w->minute % HISTORY_WINDOW_MIN);
	w->late[i] = 0;
	w->low[i] = w->high[i] = w->replicas;
}

static void add_to_window(struct backtest_history *h, const struct loop_step *s)
{
	struct history_window *w = &h->window;
	int64_t minute = (s->time_ms - h->from_ms) / MINUTE_MS;
	if (!w->started) {
		w->started = true;
		w->low[0] = w->high[0] = s->replicas;
	}
	while (w->minute < minute) {
		close_minute(w);
		if (minute - w->minute > HISTORY_WINDOW_MIN) // a long gap: nothing happens in it
			w->minute = minute - HISTORY_WINDOW_MIN - 1;
		next_minute(w);
	}
	size_t i = (size_t)(w->minute % HISTORY_WINDOW_MIN);
	w->replicas = s->replicas;
	w->late[i] += s->late;
	w->low[i] = s->replicas < w->low[i] ? s->replicas : w->low[i];
	w->high[i] = s->replicas > w->high[i] ? s->replicas : w->high[i];
}

enum history_worst backtest_history_worst(const struct backtest_history *h, int64_t *ret_from_ms, int64_t *ret_to_ms)
{
	struct history_window w = h->window;
	close_minute(&w);
	bool is_late = w.most_late > 0;
	int64_t last = is_late ? w.latest_minute : w.change_minute;
	int64_t first = last - HISTORY_WINDOW_MIN + 1;
	first = first > 0 ? first : 0;
	*ret_from_ms = h->from_ms + first * MINUTE_MS;
	*ret_to_ms = *ret_from_ms + HISTORY_WINDOW_MIN * MINUTE_MS;
	if (*ret_to_ms > h->to_ms) {
		*ret_to_ms = h->to_ms;
		int64_t from_ms = h->to_ms - HISTORY_WINDOW_MIN * MINUTE_MS;
		*ret_from_ms = from_ms > h->from_ms ? from_ms : h->from_ms;
	}
	return is_late ? HISTORY_LATEST : HISTORY_CHANGE;
}

// ---- steps ----

void backtest_history_add(void *history, size_t row, enum backtest_kind kind, const struct loop_step *step)
{
	struct backtest_history *h = history;
	if (!h->has_row[row]) {
		h->has_row[row] = true;
		track_init(&h->rows[row], h->from_ms, h->to_ms);
	}
	track_add(&h->rows[row], step->time_ms, step->replicas);
	if (kind != BACKTEST_POLICY)
		return;
	track_add(&h->demand, step->time_ms, step->demand);
	add_to_window(h, step);
}

// ---- the cost of variants ----

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
