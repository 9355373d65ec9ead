// SPDX-License-Identifier: Apache-2.0
// Hysteresis signals: the arithmetic of the WatermarkPodAutoscaler.
#ifndef GPUSCALE_POLICIES_ENGINE_WATERMARK_H
#define GPUSCALE_POLICIES_ENGINE_WATERMARK_H

#include "policies/engine/proposal.h"

struct policy_watermarks;

// Returns the proposal for a finite `value`; algorithm Average divides it by the ready replicas. With usage = that:
//   above  usage > high * (1 + tolerance): n = ceil(ready * usage / high), rounded up to `multiple`, at least spec
//   below  usage < low * (1 - tolerance):  n = max(1, floor(ready * usage / low)), rounded up to `multiple`, at most
//   spec else   spec
// The comparisons are strict, and the divisor is the mark without its tolerance. `limit` is the mark with it.
// No ready replica: REASON_NO_READY_REPLICAS. WPA: replica_calculator.go, getReplicaCount.
struct proposal watermark_propose(const struct policy_watermarks *marks, int32_t multiple, double value,
                                  const struct replica_counts *counts);

#endif
