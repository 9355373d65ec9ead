// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/source.h"

#include <math.h>
#include <stdbool.h>

#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"

static struct reading missing(enum reason reason, size_t n_series)
{
	return (struct reading){
	        .reason = reason,
	        .value = NAN,
	        .time_ms = TIME_NONE,
	        .age_ms = -1,
	        .n_series = n_series > INT32_MAX ? INT32_MAX : (int32_t)n_series,
	};
}

// Reduces several series to one value; as_zero: a value that is not finite is 0. The result is not finite when a sum is
// out of range.
__attribute__((noinline)) static double reduce(int mode, const struct obs_series *series, size_t n, bool as_zero)
{
	double sum = 0, tail = 0, max = -INFINITY, min = INFINITY;
	for (size_t i = 0; i < n; i++) {
		double v = series[i].value;
		if (!isfinite(v)) {
			if (!as_zero)
				return v;
			v = 0;
		}
		// Neumaier summation: the sum of many pods must not depend on their order.
		double s = sum + v;
		tail += fabs(sum) >= fabs(v) ? (sum - s) + v : (v - s) + sum;
		sum = s;
		max = v > max ? v : max;
		min = v < min ? v : min;
	}
	switch (mode) {
	case SERIES_SUM:
		return isfinite(sum) ? sum + tail : sum;
	case SERIES_AVG:
		return isfinite(sum) ? (sum + tail) / (double)n : sum;
	case SERIES_MAX:
		return max;
	default:
		return min;
	}
}

// With a larger difference, the clocks may be the reason for an empty response: a range of a minute can then end before
// the last sample.
#define EMPTY_SKEW_MS 10000

static int64_t size_of(int64_t ms)
{
	return ms < 0 ? i64_sub(0, ms) : ms;
}

int64_t source_answer_skew_ms(const struct policy_signal *signal, const struct obs_signal *observed)
{
	int64_t size_ms = size_of(observed->skew_ms), limit_ms = signal->stale_after_ms;
	bool is_empty = observed->state == OBS_EMPTY || observed->n_series == 0;
	return (is_empty && size_ms > EMPTY_SKEW_MS) || (limit_ms > 0 && size_ms > limit_ms) ? size_ms : 0;
}

int64_t source_sample_skew_ms(const struct policy_signal *signal, const struct obs_signal *observed, int64_t age_ms)
{
	int64_t limit_ms = signal->stale_after_ms;
	if (limit_ms <= 0)
		return 0;
	if ((age_ms > limit_ms) != (i64_add(age_ms, observed->skew_ms) > limit_ms))
		return size_of(observed->skew_ms);
	// The sample itself shows the skew where the source does not.
	return age_ms < 0 && size_of(age_ms) > limit_ms ? size_of(age_ms) : 0;
}

static struct reading skewed(const struct obs_signal *observed, int64_t skew_ms)
{
	struct reading r = missing(REASON_CLOCK_SKEW, observed->n_series);
	r.ahead_ms = skew_ms;
	return r;
}

// Why there are no series to read: the state of the response is neither OBS_OK nor OBS_EMPTY.
static struct reading unavailable(const struct policy_signal *signal, const struct obs_signal *observed)
{
	switch (observed->state) {
	case OBS_TOO_MANY:
		return missing(signal->series == SERIES_SINGLE ? REASON_AMBIGUOUS_SERIES : REASON_QUERY_FAILED,
		               observed->n_series);
	case OBS_PARTIAL:
		return missing(REASON_PARTIAL_RESPONSE, observed->n_series);
	case OBS_FORBIDDEN:
		return missing(REASON_QUERY_FORBIDDEN, 0);
	default:
		return missing(REASON_QUERY_FAILED, 0);
	}
}

// onMissing: Zero: reduces the series with 0 for each sample that is not finite. Returns NaN when there is none: then
// the sum is out of range.
__attribute__((noinline)) static double read_zeros(int mode, const struct obs_signal *observed)
{
	for (size_t i = 0; i < observed->n_series; i++)
		if (!isfinite(observed->series[i].value))
			return reduce(mode, observed->series, observed->n_series, true);
	return NAN;
}

struct reading source_read(const struct policy_signal *signal, const struct obs_signal *observed, int64_t now_ms)
{
	const bool is_empty = observed->state == OBS_EMPTY || (observed->state == OBS_OK && observed->n_series == 0);
	if (observed->state != OBS_OK && !is_empty)
		return unavailable(signal, observed);
	int64_t skew_ms = observed->skew_ms != 0 ? source_answer_skew_ms(signal, observed) : 0;
	if (skew_ms > 0)
		return skewed(observed, skew_ms);
	if (is_empty) {
		if (signal->on_missing != ON_MISSING_ZERO)
			return missing(REASON_NO_DATA, 0);
		return (struct reading){.reason = REASON_MISSING_AS_ZERO, .time_ms = now_ms, .age_ms = 0};
	}
	if (signal->series == SERIES_SINGLE && observed->n_series > 1)
		return missing(REASON_AMBIGUOUS_SERIES, observed->n_series);

	struct reading r = missing(REASON_NONE, observed->n_series);
	int64_t newest_ms = r.time_ms = observed->series[0].time_ms;
	for (size_t i = 1; i < observed->n_series; i++) {
		r.time_ms = observed->series[i].time_ms < r.time_ms ? observed->series[i].time_ms : r.time_ms;
		newest_ms = i64_max(newest_ms, observed->series[i].time_ms);
	}
	r.value = signal->series == SERIES_SINGLE ? observed->series[0].value
	                                          : reduce(signal->series, observed->series, observed->n_series, false);
	r.age_ms = i64_max(i64_sub(now_ms, r.time_ms), 0);
	r.ahead_ms = i64_max(i64_sub(newest_ms, now_ms), 0);
	if (observed->skew_ms != 0 || r.ahead_ms > 0)
		skew_ms = source_sample_skew_ms(signal, observed, r.ahead_ms > 0 ? i64_sub(0, r.ahead_ms) : r.age_ms);
	if (skew_ms > 0)
		return skewed(observed, skew_ms);
	if (signal->stale_after_ms > 0 && r.age_ms > signal->stale_after_ms) {
		r.reason = REASON_STALE_DATA;
		r.value = NAN;
	} else if (!isfinite(r.value)) {
		r.reason = REASON_NON_FINITE;
		double value = signal->on_missing == ON_MISSING_ZERO ? read_zeros(signal->series, observed) : r.value;
		if (isfinite(value)) {
			r.value = value;
			r.reason = REASON_NON_FINITE_AS_ZERO;
		}
	}
	return r;
}
