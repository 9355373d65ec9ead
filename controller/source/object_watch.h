// SPDX-License-Identifier: Apache-2.0
// Watches all objects of one resource through an informer, for the sources of policies and pools: keeps a record of
// each object, distinguishes a new spec from a new status, and reports each error once.
#ifndef GPUSCALE_CONTROLLER_SOURCE_OBJECT_WATCH_H
#define GPUSCALE_CONTROLLER_SOURCE_OBJECT_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/cache/informer.h"

#define WATCHED_UID_BYTES 64

// What distinguishes an object from its last report.
enum object_change {
	OBJECT_STATUS, // its uid and generation are the same
	OBJECT_SPEC,   // its generation has changed, or is unknown
	OBJECT_NEW,    // it was not kept, or another object of the same name replaced it
};

// An object.
struct watched_object {
	struct informer_item item; // first, so that an item is its object
	int64_t generation;
	const char *name; // in key
	char uid[WATCHED_UID_BYTES];
	char key[]; // "NAMESPACE/NAME"
};

// All callbacks run from the loop and must not free the watch.
struct object_watch_options {
	struct k8s_client *client;  // not owned
	const char *group_version;  // a constant; NULL: that of GPUAutoscalers
	const char *plural;         // a constant
	const char *namespace_name; // NULL: all namespaces, or a resource without namespaces; valid during the call
	bool is_cluster_scoped;
	// The current object, which is not being deleted. Returns whether to keep it: an object that is not kept is not
	// reported as gone, and `o` is freed. The namespace is "" for an object that lacks a valid one; it must not be
	// kept unless the resource is cluster-scoped.
	bool (*on_object)(void *arg, struct watched_object *o, enum object_change change, const char *json, size_t len);
	// A kept object was deleted, or is being deleted; `o` is freed afterwards.
	void (*on_gone)(void *arg, struct watched_object *o);
	// A list is complete, or the first attempt failed.
	void (*on_answer)(void *arg);
	// The watch fails with this error, or works again (NULL).
	void (*on_error)(void *arg, const struct err *error);
	void *arg;
};

// Other files read it; object_watch.c alone changes it.
struct object_watch {
	struct object_watch_options options;
	struct informer *informer;
	struct informer_item all; // all objects, or those of the namespace
	uint32_t list;            // number of the latest complete list, in which every object was reported; 0: none
	bool has_answer;          // a list is complete, or the first attempt failed
	char *error;              // why listing or watching fails; NULL: it does not
};

// Creates a watch and starts it. Returns NULL and *e: ERR_INTERNAL.
struct object_watch *object_watch_new(const struct object_watch_options *options, struct err *e);
// Stops the watch and reports every kept object as gone. NULL is fine.
void object_watch_stop(struct object_watch *w);
// Frees the watch without a report. Call before the client is freed. NULL is fine.
void object_watch_free(struct object_watch *w);

// Checks whether an object still exists, which the API server denied. NULL and unknown names are fine.
void object_watch_verify(struct object_watch *w, const char *namespace_name, const char *name);

#endif
