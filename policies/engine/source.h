// SPDX-License-Identifier: Apache-2.0
// Reduces the response to a query to one number, or to the reason why it has none.
#ifndef GPUSCALE_POLICIES_ENGINE_SOURCE_H
#define GPUSCALE_POLICIES_ENGINE_SOURCE_H

#include <stdint.h>

#include "policies/engine/reason.h"

struct obs_signal;
struct observation;
struct policy_signal;

struct reading {
	// REASON_NONE: a finite value; REASON_MISSING_AS_ZERO: value 0 at now; REASON_NON_FINITE_AS_ZERO: a finite
	// value, in which samples are read as 0; else missing
	enum reason reason;
	double value;     // NaN when missing; for REASON_NON_FINITE the value itself
	int64_t time_ms;  // time of the oldest contributing sample
	int64_t age_ms;   // now - time_ms, at least 0; -1 = no sample
	int64_t ahead_ms; // how far the sample is in the future; for REASON_CLOCK_SKEW the difference of the clocks
	int32_t n_series;
};

// Reduces the series as `series` of the policy says. Every series must be usable: a stale or non-finite series makes
// the whole signal missing. onMissing: Zero applies to a response without series, and to a sample that is not finite (a
// quotient without traffic; KEDA: ignoreNullValues): an outage or a stale sample is never read as zero.
struct reading source_read(const struct policy_signal *signal, const struct obs_signal *observed, int64_t now_ms);

// ---- target type Pods: one sample per pod. HPA: replica_calculator.go, groupPods ----

// The pods of the target, grouped by their sample of one signal. Failed and deleted pods are not counted.
struct pod_groups {
	double total;      // sum of the samples below; finite
	int32_t n_samples; // running pods, ready or not, with a usable sample
	int32_t n_missing; // running pods without one
	int32_t n_pending; // pending pods, whose samples do not count
	int32_t n_surplus; // how many pods there are, when there are more than replicas; else 0
	// Set by pods_propose(): how many pods without a sample it counted, and the value it used for each.
	int32_t n_filled;
	double filled_with;
};

// More pods than replicas (several pods per replica, pods of another workload, a surge) are reduced to the number of
// replicas: n_samples * mean stays the load of the replicas, and pods without a sample are left out first.
// Matches series and pods by name. Stale and non-finite samples are treated as missing. Several series for one pod are
// an error of the query (REASON_SEVERAL_PER_POD); series of pods that do not belong to the target are ignored. Without
// the list of pods (observation->pods NULL) every labelled series is treated as a running pod; of the other
// `status_replicas`, as many as are pending are treated as pending, the rest as missing. In the returned reading,
// `value` is the mean over the samples and n_series their number. `reason` is as in source_read(), or
// REASON_SEVERAL_PER_POD, REASON_NO_POD_LABEL (no series has a label) or REASON_NO_POD_SAMPLES (no series belongs to a
// running pod). Takes O(n log n) time when the series are sorted by pod name, else O(n^2).
struct reading pods_read(const struct policy_signal *signal, const struct observation *observation,
                         const struct obs_signal *observed, int64_t now_ms, struct pod_groups *ret_pods);

#endif
