// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/chart_axis.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

#define SECOND_MS  1000.0
#define MINUTE_MS  (60 * SECOND_MS)
#define DAY_MS     (24 * 60 * MINUTE_MS)
#define EPSILON    1e-9
#define VALUE_MAX  1e300 // near the end of double, the axis itself would overflow
#define LOG_SPAN   1e5
#define ZERO_SHARE 0.07
#define TIME_MAX   253402300799000.0 // 9999-12-31T23:59:59Z

void chart_number(char out[CHART_LABEL_BYTES], double value)
{
	static const struct {
		double unit;
		const char *suffix;
	} units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
	char number[NUM_TEXT_BYTES];
	const char *suffix = "";
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (isfinite(value) && fabs(value) >= units[i].unit * (1 - EPSILON)) {
			value /= units[i].unit;
			suffix = units[i].suffix;
			break;
		}
	double digits = value == 0 || !isfinite(value) ? 0 : 2 - floor(log10(fabs(value)));
	double power = pow(10, digits), rounded = round(value * power) / power;
	num_format_f64(number, isfinite(rounded) ? rounded + 0.0 : value);
	snprintf(out, CHART_LABEL_BYTES, "%.24s%s", number, suffix);
}

static struct chart_tick *add_tick(struct chart_axis *a, double value)
{
	// Should there be more ticks than room, the last one is replaced.
	a->n_ticks += a->n_ticks < CHART_TICKS_MAX;
	struct chart_tick *t = &a->ticks[a->n_ticks - 1];
	t->value = value;
	chart_number(t->label, value);
	return t;
}

// The smallest of 1, 2 and 5 times a power of ten that is not below v > 0.
static double round_up(double v)
{
	double power = pow(10, floor(log10(v)));
	static const double nice[] = {1, 2, 5};
	for (size_t i = 0; i < sizeof nice / sizeof nice[0]; i++)
		if (nice[i] * power >= v * (1 - EPSILON))
			return nice[i] * power;
	return 10 * power;
}

static double round_down(double v)
{
	double power = pow(10, floor(log10(v)));
	return v >= 5 * power * (1 - EPSILON) ? 5 * power : v >= 2 * power * (1 - EPSILON) ? 2 * power : power;
}

static void set_linear(struct chart_axis *a, double min, double max, bool from_zero, int wanted)
{
	if (from_zero && min > 0)
		min = 0;
	if (from_zero && max < 0)
		max = 0;
	if (!(max - min > EPSILON * fmax(fabs(max), fabs(min)))) { // one value
		double room = max == 0 ? 1 : fabs(max) * 0.1;
		min = from_zero || min == 0 ? min : min - room;
		max += room;
	}
	double step = round_up((max - min) / wanted);
	a->min = floor(min / step + EPSILON) * step;
	a->max = ceil(max / step - EPSILON) * step;
	double n = round((a->max - a->min) / step);
	for (int i = 0; i <= (int)n; i++) {
		double v = a->min + i * step;
		add_tick(a, fabs(v) < step * EPSILON ? 0 : v);
	}
}

// From `min` > 0; with room for 0 when there are smaller values.
static void set_log(struct chart_axis *a, double min, double max, bool has_smaller, int wanted)
{
	if (min < max / LOG_SPAN) {
		min = max / LOG_SPAN;
		has_smaller = true;
	}
	a->min = round_down(min);
	a->max = round_up(max);
	if (a->max <= a->min * (1 + EPSILON))
		a->max = round_up(a->min * 1.5);
	a->zero = has_smaller ? ZERO_SHARE : 0;
	if (has_smaller)
		add_tick(a, 0);
	double decades = log10(a->max / a->min);
	int per_decade = decades * 3 <= wanted ? 3 : 1;
	int last = (int)floor(log10(a->max * (1 + EPSILON)));
	for (int decade = (int)floor(log10(a->min) + EPSILON); decade <= last; decade++) {
		static const double nice[] = {1, 2, 5};
		double power = pow(10, decade);
		for (int i = 0; i < per_decade; i++)
			if (nice[i] * power >= a->min * (1 - EPSILON) && nice[i] * power <= a->max * (1 + EPSILON))
				add_tick(a, nice[i] * power);
	}
}

static double time_step(double span, int wanted)
{
	static const double steps_s[] = {0.001, 0.01, 0.1,  1,    2,    5,     10,    15,    30,    60,     120,   300,
	                                 600,   900,  1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800};
	for (size_t i = 0; i < sizeof steps_s / sizeof steps_s[0]; i++)
		if (span / (steps_s[i] * SECOND_MS) <= wanted)
			return steps_s[i] * SECOND_MS;
	return round_up(span / DAY_MS / wanted) * DAY_MS;
}

// A day that starts is named; other ticks show the time of day.
static void time_label(char out[CHART_LABEL_BYTES], double value, double step)
{
	static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
	                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	char stamp[NUM_TEXT_BYTES]; // 2026-01-05T09:00:00.123Z
	num_format_rfc3339_ms(stamp, (int64_t)value);
	if (fmod(value, DAY_MS) == 0) {
		int month = 10 * (stamp[5] - '0') + stamp[6] - '0', day = 10 * (stamp[8] - '0') + stamp[9] - '0';
		snprintf(out, CHART_LABEL_BYTES, "%s %d", months[(month - 1) % 12], day);
	} else {
		int len = step >= MINUTE_MS ? 5 : step >= SECOND_MS ? 8 : 12;
		snprintf(out, CHART_LABEL_BYTES, "%.*s", len, stamp + 11);
	}
}

static void set_time(struct chart_axis *a, double min, double max, int wanted)
{
	a->min = fmin(fmax(min, 0), TIME_MAX - 1);
	a->max = fmin(fmax(max, 0), TIME_MAX);
	if (!(a->max > a->min))
		a->max = a->min + SECOND_MS;
	double step = time_step(a->max - a->min, wanted);
	double first = ceil(a->min / step);
	int n = (int)(floor(a->max / step) - first) + 1;
	for (int i = 0; i < n; i++) {
		struct chart_tick *t = add_tick(a, (first + i) * step);
		time_label(t->label, t->value, step);
	}
}

void chart_axis_fit(struct chart_axis *a, enum chart_scale scale, const double *values, size_t n, bool from_zero,
                    int wanted)
{
	double min = INFINITY, max = -INFINITY;
	bool has_zero = false;
	memset(a, 0, sizeof *a);
	a->scale = scale;
	for (size_t i = 0; i < n; i++) {
		double v = values[i];
		if (!(fabs(v) < VALUE_MAX))
			continue;
		if (scale == CHART_LOG && v <= 0) {
			has_zero = true;
			continue;
		}
		min = fmin(min, v);
		max = fmax(max, v);
	}
	if (min > max) { // no value
		min = scale == CHART_LOG;
		max = 1;
		has_zero = true;
	}
	if (scale == CHART_TIME)
		set_time(a, min, max, wanted);
	else if (scale == CHART_LOG)
		set_log(a, min, max, has_zero, wanted);
	else
		set_linear(a, min, max, from_zero, wanted);
}

double chart_axis_position(const struct chart_axis *a, double value)
{
	double p;
	if (a->scale != CHART_LOG)
		p = (value - a->min) / (a->max - a->min);
	else if (a->zero > 0 && !(value >= a->min * (1 - EPSILON)))
		p = 0;
	else
		p = a->zero + (1 - a->zero) * log(fmax(value, a->min) / a->min) / log(a->max / a->min);
	return p < 0 ? 0 : p > 1 ? 1 : p;
}
