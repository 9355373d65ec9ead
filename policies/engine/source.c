// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/source.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"

const char *const pod_state_names[] = {
        [POD_READY] = "Ready",   [POD_UNREADY] = "Unready", [POD_PENDING] = "Pending",
        [POD_FAILED] = "Failed", [POD_DELETED] = "Deleted",
};
_Static_assert(sizeof pod_state_names / sizeof pod_state_names[0] == POD_STATE__COUNT, "one name per state");

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

// Returns the difference between the clocks of this host and the source, in ms (< 0: the source is behind), when it
// prevents judging a response of the source, or data of this age (< 0: from the future): the data is too old by one
// clock and fresh by the other. Returns 0 otherwise.
static int64_t answer_skew_ms(const struct policy_signal *signal, const struct obs_signal *observed)
{
	int64_t size_ms = size_of(observed->skew_ms), limit_ms = signal->stale_after_ms;
	bool is_empty = observed->state == OBS_EMPTY || observed->n_series == 0;
	return (is_empty && size_ms > EMPTY_SKEW_MS) || (limit_ms > 0 && size_ms > limit_ms) ? size_ms : 0;
}

static int64_t sample_skew_ms(const struct policy_signal *signal, const struct obs_signal *observed, int64_t age_ms)
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
	bool is_ambiguous;
	switch (observed->state) {
	case OBS_TOO_MANY:
		is_ambiguous =
		        signal->series == SERIES_SINGLE && !(signal->target.set && signal->target.type == TARGET_PODS);
		return missing(is_ambiguous ? REASON_AMBIGUOUS_SERIES : REASON_QUERY_FAILED, observed->n_series);
	case OBS_PARTIAL:
		return missing(REASON_PARTIAL_RESPONSE, observed->n_series);
	case OBS_FORBIDDEN:
		return missing(REASON_QUERY_FORBIDDEN, 0);
	default:
		return missing(REASON_QUERY_FAILED, 0);
	}
}

struct reading source_read(const struct policy_signal *signal, const struct obs_signal *observed, int64_t now_ms)
{
	const bool is_empty = observed->state == OBS_EMPTY || (observed->state == OBS_OK && observed->n_series == 0);
	if (observed->state != OBS_OK && !is_empty)
		return unavailable(signal, observed);
	int64_t skew_ms = observed->skew_ms != 0 ? answer_skew_ms(signal, observed) : 0;
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
		skew_ms = sample_skew_ms(signal, observed, r.ahead_ms > 0 ? i64_sub(0, r.ahead_ms) : r.age_ms);
	if (skew_ms > 0)
		return skewed(observed, skew_ms);
	if (signal->stale_after_ms > 0 && r.age_ms > signal->stale_after_ms) {
		r.reason = REASON_STALE_DATA;
		r.value = NAN;
	} else if (!isfinite(r.value)) {
		r.reason = REASON_NON_FINITE;
		bool as_zero = signal->on_missing == ON_MISSING_ZERO;
		// Not finite where each sample is finite: then the sum is out of range.
		double value = as_zero ? reduce(signal->series, observed->series, observed->n_series, true) : r.value;
		if (isfinite(value)) {
			r.value = value;
			r.reason = REASON_NON_FINITE_AS_ZERO;
		}
	}
	return r;
}

// ---- target type Pods ----

// Strictly ascending names, which implies that no name occurs twice.
static bool is_in_order(const struct obs_series *series, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (strcmp(series[i - 1].pod, series[i].pod) >= 0)
			return false;
	return true;
}

static const struct obs_series *find_pod(const struct obs_signal *observed, bool in_order, const char *pod)
{
	size_t lo = 0, hi = observed->n_series;
	if (!in_order) {
		for (size_t i = 0; i < hi; i++)
			if (strcmp(observed->series[i].pod, pod) == 0)
				return &observed->series[i];
		return NULL;
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = strcmp(observed->series[mid].pod, pod);
		if (c == 0)
			return &observed->series[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static bool has_doubles(const struct obs_signal *observed)
{
	for (size_t i = 1; i < observed->n_series; i++)
		for (size_t k = 0; k < i && observed->series[i].pod[0]; k++)
			if (strcmp(observed->series[i].pod, observed->series[k].pod) == 0)
				return true;
	return false;
}

struct tally {
	const struct policy_signal *signal;
	int64_t now_ms;
	struct pod_groups pods;
	double tail; // compensation of pods.total: the sum of many pods must not depend on their order (Neumaier)
	int64_t oldest_ms, newest_ms; // times of the samples that count
	int64_t newest_stale_ms;      // TIME_NONE = no sample was too old
	double non_finite;            // a sample that is not finite; 0 = none
	size_t n_labelled;
};

// Counts a running pod with the sample `s`; NULL = without a sample.
static void count_running(struct tally *y, const struct obs_series *s)
{
	bool is_stale =
	        s && y->signal->stale_after_ms > 0 && i64_sub(y->now_ms, s->time_ms) > y->signal->stale_after_ms;
	if (is_stale)
		y->newest_stale_ms = i64_max(y->newest_stale_ms, s->time_ms);
	else if (s && !isfinite(s->value))
		y->non_finite = s->value;
	if (!s || is_stale || !isfinite(s->value)) {
		y->pods.n_missing++;
		return;
	}
	double sum = y->pods.total + s->value;
	y->tail += fabs(y->pods.total) >= fabs(s->value) ? (y->pods.total - sum) + s->value
	                                                 : (s->value - sum) + y->pods.total;
	y->pods.total = sum;
	y->oldest_ms = y->pods.n_samples == 0 || s->time_ms < y->oldest_ms ? s->time_ms : y->oldest_ms;
	y->newest_ms = i64_max(y->newest_ms, s->time_ms);
	y->pods.n_samples++;
}

static void count_listed(struct tally *y, const struct observation *o, const struct obs_signal *observed, bool in_order)
{
	for (size_t i = 0; i < o->n_pods; i++) {
		switch (o->pods[i].state) {
		case POD_FAILED:
		case POD_DELETED:
			break;
		case POD_PENDING:
			y->pods.n_pending++;
			break;
		default:
			count_running(y, find_pod(observed, in_order, o->pods[i].name));
			break;
		}
	}
}

static void count_unlisted(struct tally *y, const struct observation *o, const struct obs_signal *observed)
{
	for (size_t i = 0; i < observed->n_series; i++)
		if (observed->series[i].pod[0])
			count_running(y, &observed->series[i]);
	int64_t rest = i64_max((int64_t)o->status_replicas - (int64_t)y->n_labelled, 0);
	y->pods.n_pending = (int32_t)(rest < i32_max(o->pending_replicas, 0) ? rest : i32_max(o->pending_replicas, 0));
	y->pods.n_missing = i32_from_i64(y->pods.n_missing + rest - y->pods.n_pending);
}

// Without this, the load of each replica would be counted once per pod. Pinned by prop_decide
// "surplus_of_pods_adds_nothing".
static void limit_to_replicas(struct pod_groups *pods, int32_t spec)
{
	int64_t n = (int64_t)pods->n_samples + pods->n_missing + pods->n_pending;
	int32_t replicas = i32_max(spec, 1);
	if (n <= replicas)
		return;
	pods->n_surplus = i32_from_i64(n);
	if (pods->n_samples > replicas) {
		pods->total = pods->total * (double)replicas / (double)pods->n_samples;
		pods->n_samples = replicas;
	}
	pods->n_missing = i32_min(pods->n_missing, replicas - pods->n_samples);
	pods->n_pending = i32_min(pods->n_pending, replicas - pods->n_samples - pods->n_missing);
}

// Returns why no running pod has a usable sample.
static struct reading no_samples(const struct tally *y, const struct obs_signal *observed)
{
	struct reading r = missing(REASON_NO_POD_SAMPLES, observed->n_series);
	if (y->n_labelled == 0) {
		r.reason = REASON_NO_POD_LABEL;
	} else if (y->newest_stale_ms != TIME_NONE) {
		r.time_ms = y->newest_stale_ms;
		r.age_ms = i64_sub(y->now_ms, y->newest_stale_ms);
		r.ahead_ms = sample_skew_ms(y->signal, observed, r.age_ms);
		r.reason = r.ahead_ms > 0 ? REASON_CLOCK_SKEW : REASON_STALE_DATA;
	} else if (y->non_finite != 0) {
		r.reason = REASON_NON_FINITE;
		r.value = y->non_finite;
	}
	return r;
}

struct reading pods_read(const struct policy_signal *signal, const struct observation *observation,
                         const struct obs_signal *observed, int64_t now_ms, struct pod_groups *ret_pods)
{
	*ret_pods = (struct pod_groups){0};
	if (observed->state != OBS_OK && observed->state != OBS_EMPTY)
		return unavailable(signal, observed);
	int64_t skew_ms = answer_skew_ms(signal, observed);
	if (skew_ms > 0)
		return skewed(observed, skew_ms);
	if (observed->state == OBS_EMPTY || observed->n_series == 0)
		return missing(REASON_NO_DATA, observed->n_series);
	bool in_order = is_in_order(observed->series, observed->n_series);
	if (!in_order && has_doubles(observed))
		return missing(REASON_SEVERAL_PER_POD, observed->n_series);

	struct tally y = {.signal = signal, .now_ms = now_ms, .newest_ms = INT64_MIN, .newest_stale_ms = TIME_NONE};
	for (size_t i = 0; i < observed->n_series; i++)
		y.n_labelled += observed->series[i].pod[0] != '\0';
	if (observation->pods)
		count_listed(&y, observation, observed, in_order);
	else
		count_unlisted(&y, observation, observed);
	if (y.pods.n_samples == 0)
		return no_samples(&y, observed);
	skew_ms = sample_skew_ms(signal, observed, i64_sub(now_ms, y.newest_ms > now_ms ? y.newest_ms : y.oldest_ms));
	if (skew_ms > 0)
		return skewed(observed, skew_ms);
	if (isfinite(y.pods.total))
		y.pods.total += y.tail;
	struct reading r = {
	        .reason = isfinite(y.pods.total) ? REASON_NONE : REASON_NON_FINITE,
	        .value = y.pods.total / (double)y.pods.n_samples,
	        .time_ms = y.oldest_ms,
	        .age_ms = i64_max(i64_sub(now_ms, y.oldest_ms), 0),
	        .ahead_ms = i64_max(i64_sub(y.newest_ms, now_ms), 0),
	        .n_series = y.pods.n_samples,
	};
	limit_to_replicas(&y.pods, observation->spec_replicas);
	*ret_pods = y.pods;
	return r;
}
