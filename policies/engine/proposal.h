// SPDX-License-Identifier: Apache-2.0
// What one signal asks for, before any limit: the arithmetic of targets and watermarks.
#ifndef GPUSCALE_POLICIES_ENGINE_PROPOSAL_H
#define GPUSCALE_POLICIES_ENGINE_PROPOSAL_H

#include <stdint.h>

#include "policies/engine/reason.h"

struct pod_groups;
struct policy_target;
struct policy_watermarks;

// The replica counts that the arithmetic uses; all are >= 0.
struct replica_counts {
	int32_t spec;    // the current scale
	int32_t status;  // replicas that exist
	int32_t ready;   // replicas that are ready, at most spec; spec when unknown
	int32_t pending; // replicas that exist and are not running, at most the larger of spec and status
};

struct proposal {
	int32_t replicas;   // >= 0
	int32_t direction;  // +1 the signal asks for more, -1 for fewer, 0 neither: `sustain` measures how long
	enum reason reason; // REASON_NO_READY_REPLICAS: no proposal, replicas = spec
	double compared;    // the value compared with `limit`: per replica for AverageValue and Average
	double limit;       // target value or watermark
};

// Proportional signals: the arithmetic of the HorizontalPodAutoscaler for Object and External metrics, except that a
// value above the target never lowers the scale and one below never raises it. The HPA multiplies the ratio with the
// ready replicas, or compares with the existing ones, and sets the result as the scale: with 6 of 10 replicas ready it
// reacts to an overload with a scale-down.

// Returns the proposal for a finite `value`. up_tolerance and down_tolerance are ratios, limits inclusive.
//   Value         ratio = value / target. Inside tolerance: spec; else ceil(ratio * ready), limited as above.
//                 spec 0: ceil(ratio), no tolerance. spec > 0 and no ready replica: REASON_NO_READY_REPLICAS.
//   AverageValue  ratio = value / (target * status). Inside tolerance: spec (Kubernetes issue 138505: status would be
//                 wrong during a surge); else ceil(value / target), limited as above.
//   Replicas      ceil(value); no tolerance.
// Computed in plain doubles, so that 33/30 and 27/30 lie inside a tolerance of 0.1.
// HPA: replica_calculator.go, getUsageRatioReplicaCount and GetExternalPerPodMetricReplicas.
struct proposal hpa_propose(const struct policy_target *target, double up_tolerance, double down_tolerance,
                            double value, const struct replica_counts *counts);

// Returns the proposal for pods->n_samples > 0 samples. ratio = mean / target. Without missing pods, and without
// pending pods or with ratio <= 1: spec inside the tolerance, else ceil(total / target). Otherwise missing pods count
// as the target when ratio < 1 and as 0 when ratio > 1, pending pods as 0 when ratio > 1, and the ratio is computed
// again: spec inside the tolerance, or when the ratio is now on the other side of 1 (REASON_PODS_INCONCLUSIVE); else
// ceil(total / target). A ratio above 1 never lowers the scale, one below 1 never raises it.
// `compared` is the mean with the filled pods.
struct proposal pods_propose(const struct policy_target *target, double up_tolerance, double down_tolerance,
                             struct pod_groups *pods, const struct replica_counts *counts);

// Returns the proposal for a finite `value`; algorithm Average divides it by the ready replicas. With usage = that:
//   above  usage > high * (1 + tolerance): n = ceil(ready * usage / high), rounded up to `multiple`, at least spec
//   below  usage < low * (1 - tolerance):  n = max(1, floor(ready * usage / low)), rounded up to `multiple`, at most
//   spec else   spec
// The comparisons are strict, and the divisor is the mark without its tolerance. `limit` is the mark with it.
// No ready replica: REASON_NO_READY_REPLICAS. WPA: replica_calculator.go, getReplicaCount.
struct proposal watermark_propose(const struct policy_watermarks *marks, int32_t multiple, double value,
                                  const struct replica_counts *counts);

#endif
