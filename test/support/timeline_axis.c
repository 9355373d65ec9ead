// SPDX-License-Identifier: Apache-2.0
#include "test/support/timeline_axis.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

double timeline_value_step(double max, int wanted, double min_step)
{
	if (!(max > 1e-9))
		return min_step > 0.0 ? min_step : 1.0;
	double raw = max / wanted;
	double power = pow(10.0, floor(log10(raw)));
	double step = 10.0 * power;
	static const double nice[] = {5.0, 2.5, 2.0, 1.0};
	for (size_t i = 0; i < sizeof nice / sizeof nice[0]; i++) {
		bool is_whole = min_step <= 0.0 || fmod(nice[i] * power, min_step) == 0.0;
		if (is_whole && nice[i] * power >= raw * (1.0 - 1e-9))
			step = nice[i] * power;
	}
	return step > min_step ? step : min_step;
}

double timeline_value_top(double max, double step)
{
	double pieces = ceil(max / step - 1e-9);
	return (pieces < 1.0 ? 1.0 : pieces) * step;
}

void timeline_value_label(char out[static TIMELINE_LABEL_BYTES], double value)
{
	static const struct {
		double unit;
		const char *suffix;
	} units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
	const char *suffix = "";
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (value >= units[i].unit * (1.0 - 1e-9)) {
			value /= units[i].unit;
			suffix = units[i].suffix;
			break;
		}
	// Three digits say all there is in a tick or a peak.
	snprintf(out, TIMELINE_LABEL_BYTES, "%.3g%s", value, suffix);
}

void timeline_percent_label(char out[static TIMELINE_LABEL_BYTES], double ratio)
{
	char number[TIMELINE_LABEL_BYTES];
	timeline_value_label(number, ratio * 100.0);
	snprintf(out, TIMELINE_LABEL_BYTES, "%.20s%%", number);
}

int64_t timeline_time_step_ms(int64_t span_ms, int wanted)
{
	static const int64_t steps[] = {
	        1,
	        10,
	        100,
	        SECOND_MS,
	        2 * SECOND_MS,
	        5 * SECOND_MS,
	        10 * SECOND_MS,
	        15 * SECOND_MS,
	        30 * SECOND_MS,
	        MINUTE_MS,
	        2 * MINUTE_MS,
	        5 * MINUTE_MS,
	        10 * MINUTE_MS,
	        15 * MINUTE_MS,
	        30 * MINUTE_MS,
	        HOUR_MS,
	        2 * HOUR_MS,
	        3 * HOUR_MS,
	        6 * HOUR_MS,
	        12 * HOUR_MS,
	        DAY_MS,
	        2 * DAY_MS,
	        7 * DAY_MS,
	};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
		if (span_ms / steps[i] <= wanted)
			return steps[i];
	double days = timeline_value_step((double)span_ms / (double)DAY_MS, wanted, 1.0);
	return (int64_t)days * DAY_MS;
}

static void elapsed_label(char out[static TIMELINE_LABEL_BYTES], int64_t ms, int64_t step_ms)
{
	long long s = (long long)(ms / SECOND_MS);
	if (step_ms < SECOND_MS)
		snprintf(out, TIMELINE_LABEL_BYTES, "%lld ms", (long long)ms);
	else if (step_ms < MINUTE_MS)
		snprintf(out, TIMELINE_LABEL_BYTES, "%lld:%02lld", s / 60, s % 60);
	else if (step_ms < HOUR_MS)
		snprintf(out, TIMELINE_LABEL_BYTES, "%lld min", (long long)(ms / MINUTE_MS));
	else if (step_ms < DAY_MS)
		snprintf(out, TIMELINE_LABEL_BYTES, "%lld h", (long long)(ms / HOUR_MS));
	else
		snprintf(out, TIMELINE_LABEL_BYTES, "%lld d", (long long)(ms / DAY_MS));
}

void timeline_time_label(char out[static TIMELINE_LABEL_BYTES], enum timeline_clock clock, int64_t offset_ms,
                         int64_t step_ms)
{
	if (clock == TIMELINE_ELAPSED) {
		elapsed_label(out, offset_ms, step_ms);
		return;
	}
	char stamp[NUM_TEXT_BYTES]; // 2026-01-05T09:00:00.123Z
	num_format_rfc3339_ms(stamp, offset_ms);
	if (step_ms % DAY_MS == 0)
		snprintf(out, TIMELINE_LABEL_BYTES, "%.5s", stamp + 5);
	else if (step_ms % MINUTE_MS == 0)
		snprintf(out, TIMELINE_LABEL_BYTES, "%.5s", stamp + 11);
	else
		snprintf(out, TIMELINE_LABEL_BYTES, "%.*s", step_ms < SECOND_MS ? 12 : 8, stamp + 11);
}
