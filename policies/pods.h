// SPDX-License-Identifier: Apache-2.0
// Target type Pods: one sample per pod, and a conservative guess for the pods that have none.
// HPA: replica_calculator.go, groupPods and calcPlainMetricReplicas, for metrics other than CPU.
#ifndef GPUSCALE_POLICIES_PODS_H
#define GPUSCALE_POLICIES_PODS_H

#include <stdint.h>

#include "policies/proposal.h"
#include "policies/source.h"

struct observation;
struct obs_signal;
struct policy_signal;
struct policy_target;

// The pods of the target, as one signal sees them. Failed and deleted pods are in no group.
struct pods_seen {
	double total;      // of the samples below; finite
	int32_t n_samples; // running pods, ready or not, with a usable sample
	int32_t n_missing; // running pods without one
	int32_t n_pending; // samples of pending pods do not count
	// Set by pods_propose(): pods counted although they have no sample, and as what each
	int32_t n_filled;
	double filled_with;
};

// Matches series and pods by name. A stale or non-finite sample is none. Several series of one pod are a fault of the
// query (REASON_SEVERAL_PER_POD), series of pods that are not the target's are left out. Without the list of pods
// (observation->pods NULL) every labelled series is taken as a running pod's; of the `status_replicas` others as many
// as are pending count as pending, the rest as missing.
// reading.value: the mean over the samples; n_series: those that count. reason as in source_read(), or
// REASON_SEVERAL_PER_POD, REASON_NO_POD_LABEL (no series has one), REASON_NO_POD_SAMPLES (none is a running pod's).
// Cost: linear, times the logarithm of the series, when the series are in order of pod name; else quadratic.
struct reading pods_read(const struct policy_signal *signal, const struct observation *observation,
                         const struct obs_signal *seen, int64_t now_ms, struct pods_seen *ret_seen);

// ratio = mean / target. Nobody missing, and nobody pending or ratio <= 1: inside tolerance spec, else
// ceil(total / target). Otherwise missing pods count as the target when ratio < 1 and as 0 when ratio > 1, pending pods
// as 0 when ratio > 1, and the ratio is taken anew: inside tolerance, or on the other side of 1, spec
// (REASON_PODS_INCONCLUSIVE); else ceil(total / target), unless that goes against the new ratio: then spec.
// seen->n_samples > 0. `compared` is the mean with the filled pods.
struct proposal pods_propose(const struct policy_target *target, double up_tolerance, double down_tolerance,
                             struct pods_seen *seen, const struct replica_counts *counts);

#endif
