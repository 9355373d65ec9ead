// SPDX-License-Identifier: Apache-2.0
// Proportional signals: the arithmetic of the HorizontalPodAutoscaler for Object and External metrics, except that a
// value above the target never lowers the scale and one below never raises it. The HPA multiplies the ratio with the
// ready replicas, or compares with the existing ones, and sets the result as the scale: with 6 of 10 replicas ready it
// reacts to an overload with a scale-down.
#ifndef GPUSCALE_POLICIES_ENGINE_HPA_H
#define GPUSCALE_POLICIES_ENGINE_HPA_H

#include <stdbool.h>

#include "policies/engine/proposal.h"

struct policy_target;

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

// Returns whether `ratio` is inside the tolerance, limits inclusive; NaN is outside.
bool hpa_is_within(double ratio, double up_tolerance, double down_tolerance);

// Sets replicas, reason and direction of a proposal for a ratio outside the tolerance: ceil(wanted), at least 0, at
// least spec for a ratio above 1, and at most spec for any other.
void hpa_outside(double ratio, double wanted, int32_t spec, struct proposal *ret_proposal);

#endif
