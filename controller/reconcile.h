// SPDX-License-Identifier: Apache-2.0
// One policy at work: observe -> decide -> act -> report, tick after tick, with the decider's state in between.
#ifndef GPUSCALE_CONTROLLER_RECONCILE_H
#define GPUSCALE_CONTROLLER_RECONCILE_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/observe.h"
#include "controller/refill.h"
#include "controller/render.h"
#include "controller/status_conditions.h"
#include "policies/decision.h"

struct log;
struct metrics;
struct policy_status;
struct promql_sources;
struct reconciler;
struct history;
struct trend;

// What all reconcilers share; owned by the controller.
struct reconcile_env {
	struct observe_sources sources;
	struct promql_sources *promql;
	struct log *log;
	struct metrics *metrics;
	struct history *history;
	bool dry_run;  // --dry-run: decide and report, write nothing
	bool trends;   // somebody may want to see how things went
	bool stopping; // the connections are being closed: ticks under way end without asking or writing anything more
	// Whether the policy is still to be worked on: it may have changed, gone, or passed to another process while
	// the tick waited. One that is not decides and writes nothing any more.
	bool (*is_current)(void *owner);
	// Whether its target may be written now; else *e says why.
	bool (*may_write)(void *owner, struct err *e);
	// What is wrong with the newest version of the policy, of which a good one is in force; NULL: nothing.
	const char *(*fault)(void *owner);
	// Who else drives the target, of a policy that writes nothing to it; NULL: nobody.
	const char *(*rival)(void *owner);
	// Why somebody else who drives the target may be overlooked; NULL: nobody is.
	const char *(*unseen)(void *owner);
	void (*on_idle)(void *owner); // after each tick that ends; the reconciler may be freed
};

#define RECONCILE_CONFLICTS_MAX 3 // tries per tick when somebody else writes the target at the same time

// What one reconciler is about. Nothing of it is owned; all must outlive it, or be replaced by reconciler_set_policy.
struct reconcile_subject {
	const struct policy *policy;
	int64_t generation;           // of the object that it is; 0: it came from a file
	struct policy_status *status; // NULL: nobody wants to know
	bool has_past;                // a process before this one may have left something in the object's status
	void *owner;
};

// NULL when memory ends.
struct reconciler *reconciler_new(const struct reconcile_env *env, const struct reconcile_subject *subject);
// Must be idle.
void reconciler_free(struct reconciler *r);
// The policy is another one now (same namespace/name): keeps the history that still makes sense. Must be idle.
int reconciler_set_policy(struct reconciler *r, const struct policy *policy, int64_t generation);
// Where it tells what it did from now on; NULL: nowhere. Must be idle.
void reconciler_set_status(struct reconciler *r, struct policy_status *status);
// Starts a tick. Must be idle. May end before this returns.
void reconciler_tick(struct reconciler *r, int64_t now_ms);
bool reconciler_is_idle(const struct reconciler *r);
const struct policy *reconciler_policy(const struct reconciler *r);
// The last decision, or NULL when there was none yet; ret_details as in struct decided.
const struct decision *reconciler_decision(const struct reconciler *r, const char *const **ret_details);
// Why the last tick brought no decision; "" when it did.
const char *reconciler_error(const struct reconciler *r);
// What the last tick has to say, for conditions; ret_facts refers to *ret_decided. False: there was no tick yet.
bool reconciler_facts(const struct reconciler *r, struct decided *ret_decided, struct status_facts *ret_facts);
// When the target was scaled last, as far as known, ms since the epoch; -1: not known.
int64_t reconciler_last_scale_ms(const struct reconciler *r);
// How the replicas (TREND_CURRENT, TREND_DESIRED) and then the signals went; NULL: nothing is kept, or not yet.
enum { TREND_CURRENT, TREND_DESIRED, TREND_SIGNALS };
const struct trend *reconciler_trend(const struct reconciler *r);

#endif
