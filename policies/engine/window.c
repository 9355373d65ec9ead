// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/window.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/quantile.h"

#define WINDOW_ROOM_MIN 64

uint32_t window_samples_needed(const struct policy_window *config, int64_t interval_ms)
{
	if (!config->set || config->duration_ms <= 0)
		return 0;
	int64_t per_window = config->duration_ms / i64_max(interval_ms, 1);
	if (per_window >= POLICY_WINDOW_SAMPLES_MAX / 2)
		return POLICY_WINDOW_SAMPLES_MAX;
	return (uint32_t)i64_max(2 * per_window + 2, WINDOW_ROOM_MIN);
}

void window_init(struct window *w, struct window_sample *samples, uint32_t cap)
{
	*w = (struct window){
	        .samples_offset = (uintptr_t)samples - (uintptr_t)w,
	        .cap = cap,
	        .covered_since_ms = TIME_NONE,
	        .newest_raw_ms = TIME_NONE,
	        .newest_dropped_ms = TIME_NONE,
	        .newest_limited_ms = TIME_NONE,
	};
}

static uint32_t slot_of(const struct window *w, uint32_t i)
{
	uint32_t slot = w->head + i;
	return slot >= w->cap ? slot - w->cap : slot;
}

const struct window_sample *window_at(const struct window *w, uint32_t i)
{
	assert(i < w->len);
	return &window_samples(w)[slot_of(w, i)];
}

// Double-double: the pair represents total + tail without rounding.
struct total {
	double total, tail;
};

static struct total add(struct total a, struct total b)
{
	double s = a.total + b.total;
	double t = s - a.total;
	double e = (a.total - (s - t)) + (b.total - t); // Knuth's two-sum: exact
	e += a.tail + b.tail;
	double r = s + e;
	return (struct total){r, e - (r - s)};
}

// Inline: a call with two pairs of doubles costs as much as the sum.
static inline struct total combine(int aggregate, struct total a, struct total b)
{
	switch (aggregate) {
	case WINDOW_AVG:
		return add(a, b);
	case WINDOW_MAX:
		return (struct total){a.total > b.total ? a.total : b.total, 0};
	case WINDOW_MIN:
		return (struct total){a.total < b.total ? a.total : b.total, 0};
	default:
		return (struct total){0, 0};
	}
}

// Moves all samples to the old stack. The cost is amortised over the following pops.
static void flip(struct window *w, int aggregate)
{
	struct window_sample *samples = window_samples(w);
	struct total t = {0, 0};
	for (uint32_t i = w->len; i-- > 0;) {
		struct window_sample *s = &samples[slot_of(w, i)];
		struct total own = {s->value, 0};
		t = i + 1 == w->len ? own : combine(aggregate, own, t);
		s->total = t.total;
		s->total_tail = t.tail;
	}
	w->n_old = w->len;
}

static void pop(struct window *w, int aggregate)
{
	if (w->n_old == 0)
		flip(w, aggregate);
	w->head = slot_of(w, 1);
	w->len--;
	w->n_old--;
	if (w->len == 0)
		w->covered_since_ms = TIME_NONE;
}

void window_evict(struct window *w, const struct policy_window *config, int64_t now_ms)
{
	int64_t cutoff_ms = i64_sub(now_ms, config->duration_ms);
	while (w->len > 0 && window_samples(w)[w->head].time_ms <= cutoff_ms)
		pop(w, config->aggregate);
}

void window_push(struct window *w, const struct policy_window *config, int64_t time_ms, double value, int64_t now_ms)
{
	assert(w->cap > 0 && isfinite(value));
	struct window_sample *samples = window_samples(w);
	// Compares the unlimited time, so that a sample from a clock ahead of this host's is not added again at each
	// tick.
	bool is_known = w->newest_raw_ms != TIME_NONE && time_ms == w->newest_raw_ms;
	w->newest_raw_ms = time_ms;
	if (time_ms > now_ms)
		time_ms = now_ms;
	if (is_known || time_ms <= i64_sub(now_ms, config->duration_ms))
		return;
	if (w->len > 0 && time_ms <= samples[slot_of(w, w->len - 1)].time_ms)
		return;
	if (w->len == w->cap) {
		w->newest_dropped_ms = samples[w->head].time_ms;
		pop(w, config->aggregate);
	}
	if (w->len == 0)
		w->covered_since_ms = time_ms;
	struct total fresh = {value, 0};
	if (w->len > w->n_old)
		fresh = combine(config->aggregate, (struct total){w->fresh, w->fresh_tail}, fresh);
	w->fresh = fresh.total;
	w->fresh_tail = fresh.tail;
	samples[slot_of(w, w->len)] = (struct window_sample){.time_ms = time_ms, .value = value};
	w->len++;
}

bool window_is_filled(const struct window *w, const struct policy_window *config, int64_t interval_ms, int64_t now_ms,
                      int64_t *ret_left_ms)
{
	*ret_left_ms = 0;
	if (config->min_samples > 0 || config->aggregate == WINDOW_LAST) {
		int64_t needed = config->min_samples > 0 ? config->min_samples : 1;
		if ((int64_t)w->len >= needed)
			return true;
		int64_t ticks = needed - (int64_t)w->len;
		*ret_left_ms = interval_ms > INT64_MAX / ticks ? INT64_MAX : ticks * i64_max(interval_ms, 0);
		return false;
	}
	if (w->len == 0) {
		*ret_left_ms = config->duration_ms;
		return false;
	}
	// The window is filled once the sample before the first one would be outside of it.
	int64_t filled_at_ms = i64_add(i64_sub(w->covered_since_ms, interval_ms), config->duration_ms);
	if (now_ms >= filled_at_ms)
		return true;
	*ret_left_ms = i64_sub(filled_at_ms, now_ms);
	return false;
}

// The mean of values whose sum exceeds the range of double.
static double mean_of_huge(const struct window *w)
{
	double mean = 0;
	for (uint32_t i = 0; i < w->len; i++)
		mean += window_at(w, i)->value / (double)w->len;
	return fmax(-DBL_MAX, fmin(DBL_MAX, mean));
}

static double percentile(const struct window *w, double q)
{
	double values[POLICY_WINDOW_SAMPLES_MAX];
	assert(w->len <= POLICY_WINDOW_SAMPLES_MAX);
	for (uint32_t i = 0; i < w->len; i++)
		values[i] = window_at(w, i)->value;
	return quantile(q, values, w->len);
}

double window_value(const struct window *w, const struct policy_window *config)
{
	assert(w->len > 0);
	static const double quantiles[WINDOW_AGGREGATE__COUNT] = {
	        [WINDOW_P50] = 0.5, [WINDOW_P90] = 0.9, [WINDOW_P95] = 0.95, [WINDOW_P99] = 0.99};
	if (config->aggregate == WINDOW_LAST)
		return window_at(w, w->len - 1)->value;
	if (quantiles[config->aggregate] > 0)
		return percentile(w, quantiles[config->aggregate]);
	struct total t = {w->fresh, w->fresh_tail};
	if (w->n_old > 0) {
		const struct window_sample *oldest = window_at(w, 0);
		struct total old = {oldest->total, oldest->total_tail};
		t = w->len > w->n_old ? combine(config->aggregate, old, t) : old;
	}
	if (config->aggregate != WINDOW_AVG)
		return t.total;
	double mean = t.total / (double)w->len;
	return isfinite(mean) ? mean : mean_of_huge(w);
}
