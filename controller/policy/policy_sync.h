// SPDX-License-Identifier: Apache-2.0
// Gives each policy of the store its reconciler, in the version that should be in force. Callbacks only mark a policy;
// policy_sync() compares what should be with what is, so the order of the changes does not matter.
#ifndef GPUSCALE_CONTROLLER_POLICY_POLICY_SYNC_H
#define GPUSCALE_CONTROLLER_POLICY_POLICY_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/fleet/fleet.h"
#include "controller/policy/policy_report.h"
#include "controller/source/policy_store.h"
#include "controller/status/status.h"
#include "controller/tick/reconcile.h"

struct k8s_client;
struct managed_policies;
struct managed_policy;
struct ticker;

#define RESTORE_CONFLICTS_MAX 3 // attempts when another client writes the target at the same time

struct restore_env { // nothing of it owned
	struct k8s_client *k8s;
	struct log *log;
	// Returns whether the target of the policy may be written now; else *e says why not.
	bool (*may_write)(void *arg, const struct policy_ref *body, struct err *e);
	void *arg;
};

// Reads the scale of the target of `binding`, one of `body`, sets it if it differs, and logs the outcome. A policy that
// is deleted while no controller runs restores nothing. env must outlive the k8s_client.
void restore_replicas(const struct restore_env *env, struct policy_ref *body, const struct binding *binding);

// Zeroed, then filled by the controller.
struct policy_sync {
	struct managed_policies *all;
	struct reconcile_env env; // policy_sync_init() sets the callbacks
	struct policy_report_env report_env;
	struct status_env status_env; // for policies from objects
	struct status_env file_env;   // for policies from files
	struct status_env scaled_object_env;
	struct restore_env restore_env;
	struct fleet_env fleet_env;     // likewise
	void (*check_clock)(void *arg); // call before a stored time is read
	void (*on_quiet)(void *arg);    // called when a tick ended
	void *arg;
	size_t n_added, n_changed, n_removed; // since the last line in the log
};

// Sets the callbacks of the environment of reconcilers. Returns what the store calls when policies change.
struct policy_listener policy_sync_init(struct policy_sync *s);
// Creates, changes and removes reconcilers until each marked policy has what it should have now.
void policy_sync(struct policy_sync *s);
// Returns whether each policy of this process that can be in force is: the sources have answered, no policy is marked,
// and the conflicts of each are known.
bool policy_sync_is_complete(const struct policy_sync *s);
// Writes the unsaved state of policies from files. No tick may be in progress.
void policy_sync_flush(struct policy_sync *s);
// Frees all managed policies. No tick may be in progress.
void policy_sync_free(struct policy_sync *s);

// The callbacks of struct ticks_options; arg: the managed policies.
void policy_sync_start_tick(void *arg, struct ticker *t, int64_t now_ms);
void policy_sync_write(void *arg, struct ticker *t);

// Iterates over the policies of this process that are fleets in force; after: the one before, NULL: start. Returns NULL
// at the end.
const struct managed_policy *policy_sync_next_fleet(const struct policy_sync *s, const struct managed_policy *after);
// Describes the last tick for conditions; *ret_facts refers to *ret_decided. Returns false before the first tick.
bool managed_policy_facts(const struct managed_policy *m, struct decided *ret_decided, struct status_facts *ret_facts);
// Iterates over the policies of this process that are not in force; after: the one before, NULL: start. Returns NULL at
// the end.
const struct managed_policy *policy_sync_next_idle(const struct policy_sync *s, const struct managed_policy *after);
// Returns how many of them are valid.
size_t policy_sync_count_waiting(const struct policy_sync *s);

#endif
