// SPDX-License-Identifier: Apache-2.0
// Conflicting autoscalers: while another autoscaler controls a policy's target, or another client keeps changing its
// replicas, the policy has no reconciler, unless it writes nothing: the autoscaler may use one of its signals. Without
// the RBAC rules to watch the autoscalers, the policy still runs and a warning is logged.
#ifndef GPUSCALE_CONTROLLER_POLICY_POLICY_CONFLICTS_H
#define GPUSCALE_CONTROLLER_POLICY_POLICY_CONFLICTS_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conflict_watch;
struct conflicts;
struct err;
struct k8s_call;
struct managed_policies;
struct managed_policy;
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
// Returns whether no other autoscaler is known to control the target, or this policy writes nothing to it.
bool conflicts_allow(const struct managed_policy *m, const struct policy_ref *body);
// Returns "HorizontalPodAutoscaler ns/name", or which client keeps changing the replicas; NULL: none, or not known yet.
// Valid until the loop runs.
const char *conflicts_find(const struct managed_policy *m);
// Logs the result of conflicts_find(), which must not be NULL.
void conflicts_log_started(const struct managed_policy *m);
// Writes a sentence about the result of conflicts_find(), which must not be NULL.
void conflicts_explain(const struct managed_policy *m, char *ret_text, size_t size);
// The callback of struct reconcile_env; owner: the managed policy. Starts a pause when another client keeps changing
// the replicas against the policy.
bool conflicts_yield(void *owner, int32_t from, int32_t to);
// Returns why conflicting autoscalers may go undetected; NULL: they are all visible.
const char *conflicts_watch_error(const struct managed_policy *m);
// Returns the watch of other autoscalers. Wants that do not belong to a policy have the user NULL.
struct conflict_watch *conflicts_watch(const struct conflicts *c);

#endif
