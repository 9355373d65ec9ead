// SPDX-License-Identifier: Apache-2.0
#ifndef GPUSCALE_POLICIES_SIGNAL_H
#define GPUSCALE_POLICIES_SIGNAL_H

#include <stdbool.h>

#include "policies/proposal.h"

struct policy;
struct policy_signal;

// What `value` makes the signal ask for: hpa_propose() or watermark_propose(), with the tolerances that apply
// (behavior.scaleUp.tolerance and behavior.scaleDown.tolerance override the target's, as in the HPA).
struct proposal signal_propose(const struct policy *policy, const struct policy_signal *signal, double value,
                               const struct replica_counts *counts);

// True for target type Pods: pods_read() and pods_propose() instead of source_read() and signal_propose().
bool signal_is_pods(const struct policy_signal *signal);

#endif
