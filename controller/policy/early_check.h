// SPDX-License-Identifier: Apache-2.0
// Checks the signals of a policy between two of its ticks. When one has moved, the policy ticks at once, at most once
// per interval in addition to its own ticks. An early check sends the queries of the policy, combined with similar ones
// (runtime/query/early_query.c) or else with any others (runtime/query/query_hub.h). It neither reads the target nor
// decides anything, so it costs a fraction of a tick.
#ifndef GPUSCALE_CONTROLLER_POLICY_EARLY_CHECK_H
#define GPUSCALE_CONTROLLER_POLICY_EARLY_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct managed_policy;
struct ticker;

// The checks of all policies. Zero it before use.
struct early_checks {
	struct managed_policy *queue;
	int in_flight; // those whose queries cannot be combined with similar ones, and so below
	int64_t second;
	int n_in_second; // queued in that second
	bool is_starting;
};

// The callback of struct ticks_options.
void early_check_start(void *arg, struct ticker *t, int64_t now_ms);
// Call when a tick starts: a check from before it must not lead to a tick as of an earlier moment.
void early_check_drop(struct managed_policy *m);
// Call before the reconciler is freed: a check in flight then has no effect.
void early_check_forget(struct managed_policy *m);

#endif
