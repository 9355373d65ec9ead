// SPDX-License-Identifier: Apache-2.0
#include "insight/leak.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "policies/engine/quantile.h"

#define PAIRS            (LEAK_WINDOWS * (LEAK_WINDOWS - 1) / 2)
#define MINUTE_MS        60000
#define HOUR_MS          3600000.0
#define MONOTONE_MIN     0.65 // Kendall's tau: for 16 independent floors by chance in 2 of 10,000 cases
#define STEADY_MIN       0.75 // slope of the later half to that of the earlier half
#define HALF_MIN         0.5  // slope of each half to that of the whole
#define SHARE_OF_ONE_MAX 0.2
#define NOISE_SIGMAS     3
#define MAD_SIGMA        1.4826
#define ENDED_SHARE      0.1  // share of LEAK_SLOPE_MIN: slower growth ends the leak
#define FREED            0.9  // share of the memory when the leak was found: less was freed
#define RESTART_FULL     0.95 // share of the limit: a process that got there and dropped below RESTART_EMPTY of it was
#define RESTART_EMPTY    0.5  // killed and started again
#define GAP_MS           (2 * 3600000LL)

static const int64_t window_ms[LEAK_SCALES] = {8LL * MINUTE_MS, 20LL * MINUTE_MS, 60LL * MINUTE_MS, 180LL * MINUTE_MS};
// How far a scale looks ahead, as a multiple of what it has observed: 2.8, 4, 16 and 48 hours. Far enough to report a
// leak two hours before its limit, and no farther, since most growth of healthy memory ends by itself.
static const double ahead[LEAK_SCALES] = {1.3, 0.75, 1, 1};

// The floors of a scale in the order of time.
static void floors_of(const struct leak_scale *s, double *ret_floors)
{
	for (size_t i = 0; i < LEAK_WINDOWS; i++)
		ret_floors[i] = s->floors[(s->n_floors + i) % LEAK_WINDOWS];
}

// Theil-Sen: the median slope of all pairs, per window. n <= LEAK_WINDOWS.
static double slope_of(const double *v, size_t n)
{
	double slopes[PAIRS];
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++)
			slopes[k++] = (v[j] - v[i]) / (double)(j - i);
	return quantile_lower_median(slopes, k);
}

// Kendall's tau against time: -1 to 1.
static double tau_of(const double *v)
{
	int s = 0;
	for (size_t i = 0; i < LEAK_WINDOWS; i++)
		for (size_t j = i + 1; j < LEAK_WINDOWS; j++)
			s += (v[j] > v[i]) - (v[j] < v[i]);
	return (double)s / PAIRS;
}

// Whether the growth is spread over the windows. The steps of an allocator stand out from differences that are
// otherwise zero; the differences of a noisy floor do not stand out from each other.
static bool is_spread(const double *v, double growth)
{
	double steps[LEAK_WINDOWS - 1], off[LEAK_WINDOWS - 1], largest = 0;
	for (size_t i = 1; i < LEAK_WINDOWS; i++) {
		steps[i - 1] = off[i - 1] = v[i] - v[i - 1];
		largest = fmax(largest, steps[i - 1]);
	}
	double usual = quantile_lower_median(off, LEAK_WINDOWS - 1);
	for (size_t i = 0; i < LEAK_WINDOWS - 1; i++)
		off[i] = fabs(steps[i] - usual);
	double noise = MAD_SIGMA * quantile_lower_median(off, LEAK_WINDOWS - 1);
	return largest <= SHARE_OF_ONE_MAX * growth + NOISE_SIGMAS * noise;
}

// Whether the scale leaks; its slope per window.
static bool grows(const struct leak_scale *s, double *ret_slope)
{
	double v[LEAK_WINDOWS];
	if (s->n_floors < LEAK_WINDOWS)
		return false;
	floors_of(s, v);
	double slope = slope_of(v, LEAK_WINDOWS), growth = slope * (LEAK_WINDOWS - 1);
	double early = slope_of(v, LEAK_WINDOWS / 2), late = slope_of(v + LEAK_WINDOWS / 2, LEAK_WINDOWS / 2);
	*ret_slope = fmin(slope, late);
	return slope > 0 && late >= STEADY_MIN * early && fmin(early, late) >= HALF_MIN * slope &&
	       v[LEAK_WINDOWS - 1] > s->peak && tau_of(v) >= MONOTONE_MIN && is_spread(v, growth);
}

// Reports the scale if it leaks and the limit is near enough to be foreseen from it.
static bool check_scale(const struct leak *l, size_t scale, double bytes, double limit_bytes,
                        struct leak_report *report)
{
	const struct leak_scale *s = &l->scales[scale];
	double slope, hours = (double)window_ms[scale] / HOUR_MS;
	if (!grows(s, &slope) || slope / hours < LEAK_SLOPE_MIN)
		return false;
	report->bytes_per_hour = slope / hours;
	report->observed_hours = hours * LEAK_WINDOWS;
	report->hours_to_limit = limit_bytes > 0 ? fmax(0, limit_bytes - bytes) / report->bytes_per_hour : -1;
	return report->hours_to_limit < 0 ? scale == LEAK_SCALES - 1
	                                  : report->hours_to_limit <= ahead[scale] * report->observed_hours;
}

static void push_floor(struct leak_scale *s, double floor)
{
	double *slot = &s->floors[s->n_floors % LEAK_WINDOWS];
	if (s->n_floors >= LEAK_WINDOWS)
		s->peak = fmax(s->peak, *slot);
	*slot = floor;
	s->n_floors++;
}

// Adds a value to a scale; whether it completed a window. Windows without a value are filled by interpolation, which
// keeps the slope.
static bool add_to_scale(struct leak_scale *s, int64_t window, double bytes)
{
	if (!s->is_open) {
		*s = (struct leak_scale){.is_open = true, .window = window, .floor = bytes};
		return false;
	}
	if (window == s->window) {
		s->floor = fmin(s->floor, bytes);
		return false;
	}
	double floor = s->floor;
	int64_t n = window - s->window;
	for (int64_t i = 0; i < n && i < LEAK_WINDOWS; i++)
		push_floor(s, floor + (bytes - floor) * (double)i / (double)n);
	s->window = window;
	s->floor = bytes;
	return true;
}

// Whether the value completed an epoch.
static bool add_epoch(struct leak *l, int64_t epoch, double bytes)
{
	bool is_next = l->has_epoch && epoch > l->epoch;
	if (epoch < 0)
		return false;
	if (l->has_epoch && epoch == l->epoch) {
		l->epoch_floor = fmin(l->epoch_floor, bytes);
		return false;
	}
	if (is_next) {
		memmove(l->epoch_floors, l->epoch_floors + 1, LEAK_EPOCHS * sizeof *l->epoch_floors);
		l->epoch_floors[LEAK_EPOCHS] = l->epoch_floor;
	}
	l->n_epochs = is_next ? l->n_epochs + 1 : 0;
	l->has_epoch = true;
	l->epoch = epoch;
	l->epoch_floor = bytes;
	return is_next;
}

static bool check_epochs(const struct leak *l, struct leak_report *report)
{
	if (l->n_epochs <= LEAK_EPOCHS)
		return false;
	double growth = HUGE_VAL;
	for (size_t i = 0; i < LEAK_EPOCHS; i++)
		growth = fmin(growth, l->epoch_floors[i + 1] - l->epoch_floors[i]);
	*report = (struct leak_report){.bytes_per_epoch = growth, .hours_to_limit = -1};
	return growth > LEAK_EPOCH_BYTES_MIN;
}

static bool has_ended(const struct leak *l, double bytes)
{
	for (size_t i = 0; i < LEAK_SCALES; i++) {
		double v[LEAK_WINDOWS];
		if (l->scales[i].n_floors < LEAK_WINDOWS)
			continue;
		floors_of(&l->scales[i], v);
		if (slope_of(v, LEAK_WINDOWS) / ((double)window_ms[i] / HOUR_MS) >= ENDED_SHARE * LEAK_SLOPE_MIN)
			return bytes < FREED * l->found_bytes;
	}
	return true;
}

// Whether the process reached the limit and was started again.
static bool was_restarted(const struct leak *l, double bytes, double limit_bytes)
{
	return limit_bytes > 0 && bytes < RESTART_EMPTY * limit_bytes && l->last_bytes > RESTART_FULL * limit_bytes;
}

enum leak_change leak_add(struct leak *l, int64_t time_ms, double bytes, double limit_bytes, int64_t epoch,
                          struct leak_report *ret_report)
{
	if (!isfinite(bytes) || bytes < 0 || time_ms < 0 || (l->has_value && time_ms <= l->last_ms))
		return LEAK_NONE;
	bool was_leaking = l->is_leaking, is_found = false, is_checked = false;
	if (l->has_value && (time_ms - l->last_ms > GAP_MS || was_restarted(l, bytes, limit_bytes)))
		*l = (struct leak){.is_leaking = false};
	l->has_value = true;
	l->last_ms = time_ms;
	l->last_bytes = bytes;
	bool is_epoch_over = add_epoch(l, epoch, bytes);
	if (is_epoch_over)
		is_found = check_epochs(l, ret_report);
	bool is_by_epoch = is_found;
	for (size_t i = 0; i < LEAK_SCALES; i++)
		if (add_to_scale(&l->scales[i], time_ms / window_ms[i], bytes)) {
			is_checked = true;
			is_found = is_found || check_scale(l, i, bytes, limit_bytes, ret_report);
		}
	bool is_over = l->is_by_epoch ? is_epoch_over && !is_by_epoch : is_checked && !is_found && has_ended(l, bytes);
	if (was_leaking && (!l->is_leaking || is_over)) {
		l->is_leaking = false;
		return LEAK_ENDED;
	}
	if (was_leaking || !is_found)
		return LEAK_NONE;
	l->is_leaking = true;
	l->is_by_epoch = is_by_epoch;
	l->found_bytes = bytes;
	return LEAK_FOUND;
}
