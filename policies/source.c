// SPDX-License-Identifier: Apache-2.0
#include "policies/source.h"

#include <math.h>

#include "policies/number.h"
#include "policies/observation.h"
#include "policies/policy.h"

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

static double reduce(int mode, const struct obs_series *series, size_t n)
{
	double sum = 0, tail = 0, max = series[0].value, min = series[0].value;
	for (size_t i = 0; i < n; i++) {
		double v = series[i].value;
		if (!isfinite(v))
			return v;
		// Neumaier: the sum of many pods must not depend on their order.
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
	case SERIES_MIN:
		return min;
	default:
		return series[0].value;
	}
}

struct reading source_read(const struct policy_signal *signal, const struct obs_signal *seen, int64_t now_ms)
{
	switch (seen->state) {
	case OBS_OK:
		break;
	case OBS_EMPTY:
		break;
	case OBS_PARTIAL:
		return missing(REASON_PARTIAL_RESPONSE, seen->n_series);
	default:
		return missing(REASON_QUERY_FAILED, 0);
	}
	if (seen->state == OBS_EMPTY || seen->n_series == 0) {
		if (signal->on_missing != ON_MISSING_ZERO)
			return missing(REASON_NO_DATA, 0);
		return (struct reading){.reason = REASON_MISSING_AS_ZERO, .time_ms = now_ms, .age_ms = 0};
	}
	if (signal->series == SERIES_SINGLE && seen->n_series > 1)
		return missing(REASON_AMBIGUOUS_SERIES, seen->n_series);

	struct reading r = missing(REASON_NONE, seen->n_series);
	int64_t newest_ms = r.time_ms = seen->series[0].time_ms;
	for (size_t i = 1; i < seen->n_series; i++) {
		r.time_ms = seen->series[i].time_ms < r.time_ms ? seen->series[i].time_ms : r.time_ms;
		newest_ms = i64_max(newest_ms, seen->series[i].time_ms);
	}
	r.value = reduce(signal->series, seen->series, seen->n_series);
	r.age_ms = i64_max(i64_sub(now_ms, r.time_ms), 0);
	r.ahead_ms = i64_max(i64_sub(newest_ms, now_ms), 0);
	if (signal->stale_after_ms > 0 && r.age_ms > signal->stale_after_ms) {
		r.reason = REASON_STALE_DATA;
		r.value = NAN;
	} else if (!isfinite(r.value)) {
		r.reason = REASON_NON_FINITE;
	}
	return r;
}
