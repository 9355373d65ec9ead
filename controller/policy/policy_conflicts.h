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
#include "k8s/cache/informer.h"
#include "k8s/lease/lease_record.h"

struct conflict_watch;

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

// Other files read `watch`; policy_conflicts.c alone uses the rest.
struct conflicts {
	struct conflict_watch *watch;       // of other autoscalers; interests of no policy have the user NULL
	size_t n_blind;                     // policies whose conflicts may go undetected
	const struct managed_policy *blind; // that of them whose error was logged; NULL: none
	char *error;                        // the one logged last
	bool has_logged_target;             // a target that cannot be watched was logged
	struct conflict_pause *pauses;
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

// ---- KEDA's operator ----
// Watches the Lease of KEDA's operator: while the operator runs, gpuscale does not act on ScaledObjects. The operator
// renews the Lease every few seconds, so a watch of it costs nothing once the operator is stopped.
// KEDA: cmd/operator/main.go (LeaderElectionID).

#define KEDA_LEASE      "operator.keda.sh"
#define KEDA_NAMESPACE  "keda"
#define KEDA_TEXT_BYTES 512

enum keda_state {
	KEDA_UNKNOWN,    // the Lease could not be read yet
	KEDA_RUNS,       // the Lease has a holder, and changed within its duration
	KEDA_UNREADABLE, // reading the Lease failed, so the operator may run
	KEDA_STOPPED,    // the Lease does not exist, has no holder, or did not change for its duration
	KEDA_STATE__COUNT
};

struct keda_watch_options { // owns nothing
	struct k8s_client *client;
	const char *namespace_name; // of the operator
	struct log *log;
	void (*on_change)(void *arg); // the state has changed; called from the loop
	void *arg;
};

// Other files read `state` and `text`; policy_conflicts.c alone uses the rest.
struct keda_watch {
	struct keda_watch_options options;
	struct informer *informer;
	struct informer_item lease; // wanted
	struct event expiry;        // fires when the Lease was not renewed
	enum keda_state state;
	bool has_error;                  // logged
	char renewed[LEASE_STAMP_BYTES]; // renewTime at the last change
	char key[INFORMER_KEY_BYTES], text[KEDA_TEXT_BYTES];
};

// Creates a watch and starts it. Returns NULL and *e when memory is exhausted.
struct keda_watch *keda_watch_new(const struct keda_watch_options *options, struct err *e);
// Call before the client is freed. NULL is fine.
void keda_watch_free(struct keda_watch *w);

#endif
