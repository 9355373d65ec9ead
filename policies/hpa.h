// SPDX-License-Identifier: Apache-2.0
// Proportional signals: the arithmetic of the HorizontalPodAutoscaler for Object and External metrics.
#ifndef GPUSCALE_POLICIES_HPA_H
#define GPUSCALE_POLICIES_HPA_H

#include <stdbool.h>

#include "policies/proposal.h"

struct policy_target;

// Replicas wanted for a finite `value`. up_tolerance, down_tolerance: ratios, both ends inclusive.
//   Value         ratio = value / target. Inside tolerance: spec; else ceil(ratio * ready).
//                 spec 0: ceil(ratio), no tolerance. spec > 0 and no ready replica: REASON_NO_READY_REPLICAS.
//   AverageValue  ratio = value / (target * status). Inside tolerance: spec (Kubernetes issue 138505: status would be
//                 wrong during a surge); else ceil(value / target).
//   Replicas      ceil(value); no tolerance.
// All in plain doubles, so that 33/30 and 27/30 lie inside a tolerance of 0.1.
// HPA: replica_calculator.go, getUsageRatioReplicaCount and GetExternalPerPodMetricReplicas.
struct proposal hpa_propose(const struct policy_target *target, double up_tolerance, double down_tolerance,
                            double value, const struct replica_counts *counts);

// Inside tolerance, both ends included; a NaN ratio is outside.
bool hpa_is_within(double ratio, double up_tolerance, double down_tolerance);

// ceil(wanted) replicas (at least 0) for a ratio outside tolerance: p with its replicas, reason and direction.
struct proposal hpa_outside(double ratio, double wanted, int32_t spec, struct proposal p);

#endif
