// SPDX-License-Identifier: Apache-2.0
// The proposal of one signal that has a value.
#ifndef GPUSCALE_POLICIES_ENGINE_SIGNAL_H
#define GPUSCALE_POLICIES_ENGINE_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "policies/engine/policy.h"
#include "policies/engine/proposal.h"

// Returns what a signal with a target other than Pods, or with watermarks, asks for at `value`: hpa_propose() or
// watermark_propose() with the tolerances that apply (behavior.scaleUp.tolerance and behavior.scaleDown.tolerance
// override the target's, as in the HPA).
struct proposal signal_propose(const struct policy *policy, const struct policy_signal *signal, double value,
                               const struct replica_counts *counts);

// Returns whether signal i only informs a guard or a formula: it has neither target nor watermarks, and is not of the
// objective. Such a signal has no proposal, and its absence alone holds nothing.
static inline bool signal_is_input(const struct policy *policy, size_t i)
{
	const struct policy_signal *signal = &policy->signals[i];
	const struct policy_objective *o = &policy->objective;
	bool is_of_objective = o->set && (i == o->demand_index || i == o->backlog_index);
	return !signal->target.set && !signal->watermarks.set && !is_of_objective;
}

#endif
