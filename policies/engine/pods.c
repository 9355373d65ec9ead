// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/pods.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "policies/engine/hpa.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"

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

static struct reading missing(enum reason reason, const struct obs_signal *observed)
{
	return (struct reading){
	        .reason = reason,
	        .value = NAN,
	        .time_ms = TIME_NONE,
	        .age_ms = -1,
	        .n_series = observed->n_series > INT32_MAX ? INT32_MAX : (int32_t)observed->n_series,
	};
}

// Returns why no running pod has a usable sample.
static struct reading no_samples(const struct tally *y, const struct obs_signal *observed)
{
	struct reading r = missing(REASON_NO_POD_SAMPLES, observed);
	if (y->n_labelled == 0) {
		r.reason = REASON_NO_POD_LABEL;
	} else if (y->newest_stale_ms != TIME_NONE) {
		r.time_ms = y->newest_stale_ms;
		r.age_ms = i64_sub(y->now_ms, y->newest_stale_ms);
		r.ahead_ms = source_sample_skew_ms(y->signal, observed, r.age_ms);
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
	if (observed->state == OBS_PARTIAL)
		return missing(REASON_PARTIAL_RESPONSE, observed);
	if (observed->state == OBS_FORBIDDEN)
		return missing(REASON_QUERY_FORBIDDEN, observed);
	if (observed->state != OBS_OK && observed->state != OBS_EMPTY)
		return missing(REASON_QUERY_FAILED, observed);
	struct reading skewed = missing(REASON_CLOCK_SKEW, observed);
	skewed.ahead_ms = source_answer_skew_ms(signal, observed);
	if (skewed.ahead_ms > 0)
		return skewed;
	if (observed->state == OBS_EMPTY || observed->n_series == 0)
		return missing(REASON_NO_DATA, observed);
	bool in_order = is_in_order(observed->series, observed->n_series);
	if (!in_order && has_doubles(observed))
		return missing(REASON_SEVERAL_PER_POD, observed);

	struct tally y = {.signal = signal, .now_ms = now_ms, .newest_ms = INT64_MIN, .newest_stale_ms = TIME_NONE};
	for (size_t i = 0; i < observed->n_series; i++)
		y.n_labelled += observed->series[i].pod[0] != '\0';
	if (observation->pods)
		count_listed(&y, observation, observed, in_order);
	else
		count_unlisted(&y, observation, observed);
	if (y.pods.n_samples == 0)
		return no_samples(&y, observed);
	skewed.ahead_ms = source_sample_skew_ms(signal, observed,
	                                        i64_sub(now_ms, y.newest_ms > now_ms ? y.newest_ms : y.oldest_ms));
	if (skewed.ahead_ms > 0)
		return skewed;
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

static struct proposal stay(int32_t spec, enum reason reason, struct proposal p)
{
	p.replicas = spec;
	p.reason = reason;
	p.direction = 0;
	return p;
}

struct proposal pods_propose(const struct policy_target *target, double up_tolerance, double down_tolerance,
                             struct pod_groups *pods, const struct replica_counts *counts)
{
	double n = (double)pods->n_samples, total = pods->total;
	double ratio = total / n / target->value;
	struct proposal p = {.compared = total / n, .limit = target->value};
	// Divides the total, because the HPA computes in whole milli-units: a quotient that is whole there must not
	// exceed it here by a rounding error, as ceil(ratio * pods) could.
	if (pods->n_missing == 0 && !(pods->n_pending > 0 && ratio > 1)) {
		if (hpa_is_within(ratio, up_tolerance, down_tolerance))
			return stay(counts->spec, REASON_WITHIN_TOLERANCE, p);
		hpa_outside(ratio, total / target->value, counts->spec, &p);
		return p;
	}
	int64_t filled = ratio != 1 ? pods->n_missing : 0;
	if (ratio > 1)
		filled += pods->n_pending;
	pods->n_filled = i32_from_i64(filled);
	pods->filled_with = ratio < 1 ? target->value : 0;
	n += (double)filled;
	p.compared = (total + pods->filled_with * (double)filled) / n;
	double wanted = total / target->value + (ratio < 1 ? (double)filled : 0);
	// Without load the share does not depend on the target, and must not by a rounding error. Pinned by prop_guards
	// "throttled_replicas_never_lower_a_proposal" with PROP_SEED=2.
	double refilled = total < 0 || total > 0 ? p.compared / target->value : (double)filled / n;
	if (hpa_is_within(refilled, up_tolerance, down_tolerance))
		return stay(counts->spec, REASON_WITHIN_TOLERANCE, p);
	if ((ratio < 1 && refilled > 1) || (ratio > 1 && refilled < 1))
		return stay(counts->spec, REASON_PODS_INCONCLUSIVE, p);
	hpa_outside(refilled, wanted, counts->spec, &p);
	return p;
}
