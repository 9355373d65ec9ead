// SPDX-License-Identifier: Apache-2.0
// Reads policies from the API server into the store: watches GPUAutoscaler objects through an informer.
#ifndef GPUSCALE_CONTROLLER_SOURCE_POLICY_WATCH_H
#define GPUSCALE_CONTROLLER_SOURCE_POLICY_WATCH_H

#include <stdbool.h>

struct err;
struct informer_stats;
struct k8s_client;
struct log;
struct policy_store;
struct policy_watch;

#define POLICY_WATCH_PLURAL "gpuautoscalers"

struct policy_watch_options { // nothing of it owned
	struct k8s_client *client;
	const char *namespace_name; // NULL: all namespaces
	struct policy_store *store;
	struct log *log;
	// A list is complete, or the first attempt failed. Called from the loop; must not free the watch. May be NULL.
	void (*on_synced)(void *arg);
	void *arg;
};

// Creates a policy watch and starts it. Returns NULL and *e when memory is exhausted.
struct policy_watch *policy_watch_new(const struct policy_watch_options *options, struct err *e);
// Frees the watch. The policies stay in the store. Call before the k8s_client is freed. NULL is fine.
void policy_watch_free(struct policy_watch *w);

// Checks whether a policy still exists, which the API server denied. If it does not, it is removed from the store.
void policy_watch_verify(struct policy_watch *w, const char *namespace_name, const char *name);

struct policy_watch_state {
	bool has_answer;   // a list is complete, or the first attempt failed
	bool is_synced;    // a list is complete: the store contains the policies as of the last report
	const char *error; // why listing or watching fails; "" when it does not
};
void policy_watch_get_state(const struct policy_watch *w, struct policy_watch_state *ret_state);
void policy_watch_get_stats(const struct policy_watch *w, struct informer_stats *ret_stats);

#endif
