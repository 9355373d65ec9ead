// SPDX-License-Identifier: Apache-2.0
// Applies the grant of a pool, or what the variants of the policy serve, to a decision.
#ifndef GPUSCALE_POLICIES_ENGINE_DECISION_GRANT_H
#define GPUSCALE_POLICIES_ENGINE_DECISION_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/engine/reason.h"
#include "policies/engine/stage.h"

struct decision;
struct policy;

// Changes the decision that decide() made for `policy` from d->desired to `granted` replicas, and appends an entry of
// the reason's stage, pool or variants, with `reason` to the trace, which then explains the decision. Without room in
// the trace only the replicas change. Does nothing when `granted` is what the policy wants. Call at most once per
// decision, and not for a policy that writes nothing (paused, dryRun).
void decide_grant(const struct policy *policy, int32_t granted, enum reason reason, struct decision *d);

// Appends an entry to the trace that changes nothing.
void decide_add_note(struct decision *d, enum stage stage, enum reason reason);

// Whether decide_grant() gives this reason: a target with 0 replicas after such a decision was emptied by its pool.
bool decide_reason_is_of_pool(enum reason reason);

#endif
