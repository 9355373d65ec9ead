// SPDX-License-Identifier: Apache-2.0
// What a policy awaits, and above all conflicting autoscalers: while another autoscaler controls a policy's target, or
// another client keeps changing its replicas, the policy has no reconciler, unless it writes nothing: the autoscaler
// may use one of its signals. Without the RBAC rules to watch the autoscalers, the policy still runs and a warning is
// logged.
#ifndef GPUSCALE_CONTROLLER_POLICY_POLICY_CONFLICTS_H
#define GPUSCALE_CONTROLLER_POLICY_POLICY_CONFLICTS_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/policy/managed_policy.h"

struct conflict_watch;
struct err;
struct k8s_call;
struct policy_ref;

#define CONFLICT_MANAGER_BYTES 129 // Kubernetes limits a field manager to 128 bytes

// A policy stops writing because another client keeps changing its target (scale_fight.h).
struct conflict_pause {
	struct conflict_pause *prev, *next; // of all
	struct managed_policy *m;
	struct event timer;
	struct k8s_call *asking;               // for the field manager
	char *path;                            // where the replicas are; NULL: in /scale
	int64_t until_ms;                      // wall clock
	char who[CONFLICT_MANAGER_BYTES + 20]; // "": not known yet
};

// Returns the conflicts of all policies; NULL and *e: ERR_INTERNAL.
struct conflicts *conflicts_new(struct managed_policies *all, struct err *e);
// Call before the connections are freed; NULL is fine.
void conflicts_free(struct conflicts *c);
// Watches for autoscalers of the target of `body`, the version to run if its target is free; NULL: stops watching.
void conflicts_sync(struct managed_policy *m, struct policy_ref *body);
// Returns "HorizontalPodAutoscaler ns/name", or which client keeps changing the replicas; NULL: none, or not known yet.
// Valid until the loop runs.
const char *conflicts_find(const struct managed_policy *m);
// The callback of struct reconcile_env; owner: the managed policy. Starts a pause when another client keeps changing
// the replicas against the policy.
bool conflicts_yield(void *owner, int32_t from, int32_t to);
// Returns why conflicting autoscalers may go undetected; NULL: they are all visible.
const char *conflicts_watch_error(const struct managed_policy *m);
// Returns the watch of other autoscalers. Wants that do not belong to a policy have the user NULL.
struct conflict_watch *conflicts_watch(const struct conflicts *c);

// ---- what a policy awaits, be it a conflict or anything else ----

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
