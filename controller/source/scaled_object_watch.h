// SPDX-License-Identifier: Apache-2.0
// Reads policies from the API server into the store: watches ScaledObjects of KEDA and converts each.
#ifndef GPUSCALE_CONTROLLER_SOURCE_SCALED_OBJECT_WATCH_H
#define GPUSCALE_CONTROLLER_SOURCE_SCALED_OBJECT_WATCH_H

#include <stdbool.h>

struct err;
struct k8s_client;
struct log;
struct object_watch;
struct policy_store;
struct promql_sources;
struct scaled_object_watch;

struct scaled_object_watch_options { // owns nothing
	struct k8s_client *client;
	const char *namespace_name; // NULL: all namespaces
	struct policy_store *store;
	struct promql_sources *sources; // the servers that triggers may use, by URL
	bool authenticates;             // read TriggerAuthentications and the Secrets that they name
	struct log *log;
	// A list is complete, or the first attempt failed. Called from the loop; must not free the watch.
	void (*on_synced)(void *arg);
	void *arg;
};

// Creates a watch and starts it. Returns NULL and *e when memory is exhausted.
struct scaled_object_watch *scaled_object_watch_new(const struct scaled_object_watch_options *options, struct err *e);
// The policies stay in the store. Call before the client is freed. NULL is fine.
void scaled_object_watch_free(struct scaled_object_watch *w);
// Returns the watch of the objects, which belongs to `w`.
struct object_watch *scaled_object_watch_objects(const struct scaled_object_watch *w);

#endif
