// SPDX-License-Identifier: Apache-2.0
// Target type Pods: one sample per pod, and a conservative guess for the pods that have none.
// HPA: replica_calculator.go, groupPods and calcPlainMetricReplicas, for metrics other than CPU.
#ifndef GPUSCALE_POLICIES_ENGINE_PODS_H
#define GPUSCALE_POLICIES_ENGINE_PODS_H

#include <stdint.h>

#include "policies/engine/proposal.h"
#include "policies/engine/source.h"

struct observation;
struct obs_signal;
struct policy_signal;
struct policy_target;

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

// Returns the proposal for pods->n_samples > 0 samples. ratio = mean / target. Without missing pods, and without
// pending pods or with ratio <= 1: spec inside the tolerance, else ceil(total / target). Otherwise missing pods count
// as the target when ratio < 1 and as 0 when ratio > 1, pending pods as 0 when ratio > 1, and the ratio is computed
// again: spec inside the tolerance, or when the ratio is now on the other side of 1 (REASON_PODS_INCONCLUSIVE); else
// ceil(total / target). A ratio above 1 never lowers the scale, one below 1 never raises it, as in hpa_outside().
// `compared` is the mean with the filled pods.
struct proposal pods_propose(const struct policy_target *target, double up_tolerance, double down_tolerance,
                             struct pod_groups *pods, const struct replica_counts *counts);

#endif
