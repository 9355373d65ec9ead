// SPDX-License-Identifier: Apache-2.0
// The nodes of the cluster for the remediation agent, kept up to date by a watch.
#ifndef GPUSCALE_REMEDY_AGENT_NODE_STORE_H
#define GPUSCALE_REMEDY_AGENT_NODE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "k8s/cache/informer.h"
#include "remedy/agent/node_view.h"

struct err;
struct k8s_client;
struct node_pod;
struct node_store;

// A node. The store owns the record until the node is deleted; the caller writes only the last members.
struct node_record {
	struct informer_item item;
	struct node_view view;
	// Written by the caller. is_known: the planner has the node, from the annotation with this hash. is_bad: the
	// annotation is not a record.
	bool is_known, is_bad;
	uint64_t record_hash;
	int64_t written_ms;    // when the annotation was last written
	int contradicted;      // ticks in a row
	bool has_devices;      // ResourceSlices list GPUs of the node
	struct arena pod_text; // memory of pods[]
	struct node_pod *pods; // pods in the last list; NULL = none
	size_t n_pods;
	bool has_new_pods; // since the planner last got them
	char key[];        // "/NAME"
};

struct node_store_options {
	struct k8s_client *client;                                  // not owned
	void (*on_gone)(void *arg, const struct node_record *node); // the node was deleted
	void (*on_error)(void *arg, const struct err *error);       // error of the watch; NULL: it works again
	void *arg;
};

struct node_store *node_store_new(const struct node_store_options *options, struct err *e);
// Call before the client is freed. NULL is fine.
void node_store_free(struct node_store *s);

const char *node_store_name(const struct node_record *n);
struct node_record *node_store_find(const struct node_store *s, const char *name);
// Iterates over all nodes: NULL starts, and NULL ends.
struct node_record *node_store_next(const struct node_store *s, const struct node_record *n);
// Takes over the Node that the API server returned for a write.
void node_store_take(struct node_store *s, struct node_record *n, const char *json, size_t len);
// Returns whether the list of nodes is complete and changes are being reported.
bool node_store_is_synced(const struct node_store *s);

#endif
