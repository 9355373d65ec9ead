// SPDX-License-Identifier: Apache-2.0
// One policy at work: observe -> decide -> act -> report, tick after tick, with the decider's state in between.
#ifndef GPUSCALE_CONTROLLER_RECONCILE_H
#define GPUSCALE_CONTROLLER_RECONCILE_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/observe.h"
#include "controller/refill.h"
#include "policies/decision.h"

struct log;
struct metrics;
struct promql_sources;
struct reconciler;
struct history;

// What all reconcilers share; owned by the controller.
struct reconcile_env {
	struct observe_sources sources;
	struct promql_sources *promql;
	struct log *log;
	struct metrics *metrics;
	struct history *history;
	bool dry_run;  // --dry-run: decide and report, write nothing
	bool stopping; // the connections are being closed: ticks under way end without asking or writing anything more
	void (*on_idle)(void *arg); // after each tick that ends
	void *on_idle_arg;
};

#define RECONCILE_CONFLICTS_MAX 3 // tries per tick when somebody else writes the target at the same time

// A reconciler for the policy, which must outlive it or be replaced by reconciler_set_policy. NULL when memory ends.
struct reconciler *reconciler_new(const struct reconcile_env *env, const struct policy *policy);
// Must be idle.
void reconciler_free(struct reconciler *r);
// The policy was read again (same namespace/name): keeps the history that still makes sense. Must be idle.
int reconciler_set_policy(struct reconciler *r, const struct policy *policy);
// Starts a tick. Must be idle. May end before this returns.
void reconciler_tick(struct reconciler *r, int64_t now_ms);
bool reconciler_is_idle(const struct reconciler *r);
const struct policy *reconciler_policy(const struct reconciler *r);
// The last decision, or NULL when there was none yet; ret_details as in struct decided.
const struct decision *reconciler_decision(const struct reconciler *r, const char *const **ret_details);
// Why the last tick brought no decision; "" when it did.
const char *reconciler_error(const struct reconciler *r);

#endif
