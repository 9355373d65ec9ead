// SPDX-License-Identifier: Apache-2.0
// Watches the Lease of KEDA's operator: while the operator runs, gpuscale does not act on ScaledObjects. The operator
// renews the Lease every few seconds, so a watch of it costs nothing once the operator is stopped.
// KEDA: cmd/operator/main.go (LeaderElectionID).
#ifndef GPUSCALE_CONTROLLER_POLICY_KEDA_WATCH_H
#define GPUSCALE_CONTROLLER_POLICY_KEDA_WATCH_H

struct err;
struct k8s_client;
struct keda_watch;
struct log;

#define KEDA_LEASE     "operator.keda.sh"
#define KEDA_NAMESPACE "keda"

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

// Creates a watch and starts it. Returns NULL and *e when memory is exhausted.
struct keda_watch *keda_watch_new(const struct keda_watch_options *options, struct err *e);
// Call before the client is freed. NULL is fine.
void keda_watch_free(struct keda_watch *w);
enum keda_state keda_watch_state(const struct keda_watch *w);
// Returns the operator as messages name it when it runs or may run; valid until the loop runs.
const char *keda_watch_text(const struct keda_watch *w);

#endif
