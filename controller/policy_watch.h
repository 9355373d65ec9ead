// SPDX-License-Identifier: Apache-2.0
// Policies from the API server as a source of the store: GPUAutoscaler objects, listed once and watched from then on.
#ifndef GPUSCALE_CONTROLLER_POLICY_WATCH_H
#define GPUSCALE_CONTROLLER_POLICY_WATCH_H

#include <stdbool.h>

#include "k8s/watch.h"

struct err;
struct k8s_client;
struct log;
struct policy_store;
struct policy_watch;

#define POLICY_WATCH_PLURAL "gpuautoscalers"

struct policy_watch_options { // nothing of it owned
	struct k8s_client *client;
	const char *namespace_name; // NULL: all of them
	struct policy_store *store;
	struct log *log;
	// A list is complete, or it is known for the first time why there is none. May be NULL.
	void (*on_settled)(void *arg);
	void *arg;
};

// Starts at once. NULL and *e when memory ends.
struct policy_watch *policy_watch_new(const struct policy_watch_options *options, struct err *e);
// The policies stay in the store. Before the k8s_client is freed. NULL is fine.
void policy_watch_free(struct policy_watch *w);

struct policy_watch_state {
	bool is_settled;   // listed once, or known why not
	bool is_synced;    // listed once: what the store has is what is there, or was when it was last heard of
	const char *error; // why it cannot list or watch now; "" when it can
};
struct k8s_watch_stats policy_watch_stats(const struct policy_watch *w);
void policy_watch_get_state(const struct policy_watch *w, struct policy_watch_state *ret_state);

#endif
