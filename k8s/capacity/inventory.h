// SPDX-License-Identifier: Apache-2.0
// Keeps the account of a cluster's capacity (k8s/capacity/capacity.h) up to date: watches all nodes and all pods, and
// where the cluster serves resource.k8s.io/v1 (Kubernetes 1.34), ResourceSlices, DeviceClasses and ResourceClaims. It
// needs rights that the base installation does not grant: manifests/capacity.
#ifndef GPUSCALE_K8S_CAPACITY_INVENTORY_H
#define GPUSCALE_K8S_CAPACITY_INVENTORY_H

#include <stddef.h>

#include "k8s/cache/informer.h"

#define INVENTORY_DRA_ASK_MS   600000 // whether the cluster serves resource.k8s.io/v1, where it did not
#define INVENTORY_DRA_RETRY_MS 10000  // the same, where the last request failed

struct capacity;
struct capacity_pod;
struct err;
struct inventory;
struct k8s_client;

struct inventory_options {
	struct k8s_client *client; // not owned
	// A list is complete, or a watch failed or recovered; not for each event. May be NULL.
	void (*on_change)(void *arg);
	void *arg;
};

// Creates an inventory and starts to watch. Returns NULL and *e: ERR_INTERNAL, ERR_LIMIT.
struct inventory *inventory_new(const struct inventory_options *options, struct err *e);
// Frees the inventory. Call before the client is freed. NULL is fine.
void inventory_free(struct inventory *i);

// BROKEN: a watch fails, so the account may be wrong; UNSYNCED: the first lists are not complete yet.
enum inventory_state { INVENTORY_BROKEN, INVENTORY_UNSYNCED, INVENTORY_KNOWN };
// Returns the state; in *ret_error (may be NULL), why it is broken: ERR_AUTH when the rights are missing.
enum inventory_state inventory_get_state(const struct inventory *i, struct err *ret_error);
// Returns the account; to be used while the state is INVENTORY_KNOWN.
struct capacity *inventory_capacity(const struct inventory *i);

// Returns the account of a pod; NULL: the inventory has none of this name, or the pod has finished.
const struct capacity_pod *inventory_find_pod(const struct inventory *i, const char *namespace_name, const char *name);

struct inventory_stats {
	size_t nodes, pods;
	struct informer_state sum; // of all watches
};
struct inventory_stats inventory_get_stats(const struct inventory *i);

#endif
