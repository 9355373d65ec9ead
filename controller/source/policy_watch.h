// SPDX-License-Identifier: Apache-2.0
// Reads policies from the API server into the store: watches GPUAutoscaler objects, or ScaledObjects of KEDA, each of
// which it converts.
#ifndef GPUSCALE_CONTROLLER_SOURCE_POLICY_WATCH_H
#define GPUSCALE_CONTROLLER_SOURCE_POLICY_WATCH_H

#include <stdbool.h>

#include "base/schema/schema.h"
#include "controller/source/policy_store.h"

struct k8s_client;
struct log;
struct object_watch;
struct promql_sources;
struct trigger_auths;

#define POLICY_WATCH_PLURAL "gpuautoscalers"

struct policy_watch_options { // nothing of it owned
	struct k8s_client *client;
	const char *namespace_name; // NULL: all namespaces
	struct policy_store *store;
	struct log *log;
	// A list is complete, or the first attempt failed. Called from the loop; must not free the watch.
	void (*on_synced)(void *arg);
	void *arg;
	enum policy_source source; // POLICY_FROM_OBJECT or POLICY_FROM_SCALED_OBJECT
	// Of ScaledObjects:
	struct promql_sources *sources; // the servers that triggers may use, by URL
	bool authenticates;             // read TriggerAuthentications and the Secrets that they name
};

// Other files read `objects`; policy_watch.c alone uses the rest.
struct policy_watch {
	struct policy_watch_options options;
	// An object that object_watch_verify finds absent is removed from the store; once a list is complete, the store
	// contains the policies as of the last report.
	struct object_watch *objects;
	struct schema_errors errors, unknown; // of the current GPUAutoscaler
	struct trigger_auths *auths;          // of ScaledObjects; NULL: not read
	bool is_full;                         // logged
};

// Creates a policy watch and starts it. Returns NULL and *e when memory is exhausted.
struct policy_watch *policy_watch_new(const struct policy_watch_options *options, struct err *e);
// Frees the watch. The policies stay in the store. Call before the k8s_client is freed. NULL is fine.
void policy_watch_free(struct policy_watch *w);

#endif
