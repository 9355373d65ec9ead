// SPDX-License-Identifier: Apache-2.0
// Computes, logs and explains what a managed policy awaits (enum policy_awaits).
#ifndef GPUSCALE_CONTROLLER_POLICY_POLICY_AWAITS_H
#define GPUSCALE_CONTROLLER_POLICY_POLICY_AWAITS_H

#include <stddef.h>

#include "controller/policy/managed_policy.h"

// Returns what the policy awaits.
enum policy_awaits policy_awaits_now(const struct managed_policy *m);
// Likewise, apart from its conflicts.
enum policy_awaits policy_awaits_apart(const struct managed_policy *m);
// Sets m->awaits, and logs it when another policy or autoscaler controls the target or releases it.
void policy_awaits_update(struct managed_policy *m);
// Writes to ret_why why a policy of this process is not in force. Returns STATUS_CONFLICT, STATUS_INVALID, or
// STATUS_PHASE__COUNT while that is not known yet.
enum status_phase policy_awaits_explain(const struct managed_policy *m, char *ret_why, size_t size);

#endif
