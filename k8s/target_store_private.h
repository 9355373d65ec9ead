// SPDX-License-Identifier: Apache-2.0
// What the files of the store of targets share; nobody else includes this.
//   target_store.c   what is known of each target, who waits for it, the public face
//   target_watch.c   the watches of kinds and namespaces that feed it
//   target_fetch.c   what the watches do not tell
//   target_kind.c    the kinds
#ifndef GPUSCALE_K8S_TARGET_STORE_PRIVATE_H
#define GPUSCALE_K8S_TARGET_STORE_PRIVATE_H

#include <uthash.h>
#include <utlist.h>

#include "base/err.h"
#include "k8s/discovery.h"
#include "k8s/pod_store.h"
#include "k8s/target_decode.h"
#include "k8s/target_store.h"

#define TARGET_VERSION_BYTES 32 // of etcd's 20 digits; a longer one is not kept, and its target read by GET

struct target_kind {
	int number; // in the store
	char api_version[DISCOVERY_GROUP_BYTES], name[DISCOVERY_NAME_BYTES];
	char plural[DISCOVERY_NAME_BYTES]; // "" until the client has learnt it
	bool tells_scale;                  // its objects do; else /scale is read after one has changed
	struct target_watch *all;          // of its watches the one of all namespaces
	int n_watches, n_records;
};

struct target_watch {
	struct target_watch *prev, *next;
	struct target_store *store;
	struct target_kind *kind;
	struct k8s_watch *watch;
	struct target_record *records;
	uint64_t list; // number of the latest list begun
	bool is_synced, is_broken;
	char why[ERR_MSG_BYTES];
	char namespace_name[]; // "" = all
};

// Kept small: there may be 20000 of them.
struct target_record {
	UT_hash_handle hh;
	struct target_record *prev, *next; // of the watch
	struct target_kind *kind;
	struct target_watch *watch; // NULL: its kind is not known to the client yet
	struct target_store *store;
	struct k8s_call
	        *fetch; // read by itself: wanted after the list had come, or of a kind that does not tell its scale
	int64_t fetch_after_ms; // 0 = at once
	uint64_t seen;          // number of the latest list it was in
	int refs;
	bool is_known, exists;
	bool is_noted; // the version is that of our own write, whose event may not have come
	int32_t spec_replicas, status_replicas, ready_replicas; // ready: -1 = it does not say
	int64_t generation;
	char resource_version[TARGET_VERSION_BYTES], uid[TARGET_UID_BYTES];
	char object_version[TARGET_VERSION_BYTES]; // of a kind that does not tell its scale: of the latest event
	char *selector;                            // NULL = ""
	int pods_refs;
	struct pod_set *pods; // NULL: not wanted, or they cannot be had
	char key[];           // number of the kind, '/', namespace, '/', name
};

struct target_store {
	struct target_store_options options;
	struct target_record *records; // hash
	struct target_watch *watches;
	struct target_kind *kinds[TARGET_KINDS_MAX]; // NULL: room for one
	size_t n_kinds;                              // of these, NULLs counted
	uint64_t lists;
	struct target_waiter *waiters;
	struct event *wake;
	struct pod_store *pods;
	bool is_stopped;
	struct target_store_stats stats;
};

// ---- target_store.c ----
struct target_record *target_find(const struct target_store *s, const struct target_kind *kind,
                                  const char *namespace_name, const char *name);
// What the object's text says of it; what cannot be used makes it unknown.
void target_apply(struct target_record *r, const char *json, size_t len);
void target_set_absent(struct target_record *r);
// It has to be read by itself, when somebody wants to know, but not before so long.
void target_set_unknown(struct target_record *r, int64_t for_ms);
// /scale as it was read. What an event told meanwhile may be newer: then it is read again.
void target_apply_scale(struct target_record *r, const struct scale *scale);
// Who waits is called soon, if what it waits for is there.
void target_store_wake(struct target_store *s);

// ---- target_watch.c ----
// The watch that a target belongs to, started when there is none. The kind has its plural. NULL and *e.
struct target_watch *target_watch_of(struct target_store *s, struct target_kind *kind, const char *namespace_name,
                                     struct err *e);
// It has no records any more.
void target_watch_free(struct target_watch *w);

// ---- target_fetch.c ----
void target_fetch(struct target_record *r, const struct scale_ref *ref);

// ---- target_kind.c ----
// Those of apps/v1. ERR_INTERNAL.
int target_kinds_init(struct target_store *s, struct err *e);
void target_kinds_done(struct target_store *s);
struct target_kind *target_kind_find(const struct target_store *s, const struct scale_ref *ref);
// NULL: one kind too many, or no name of one.
struct target_kind *target_kind_add(struct target_store *s, const char *api_version, const char *name);
// Nobody wants a target of it any more.
void target_kind_drop(struct target_store *s, struct target_kind *k);
// Has the client learnt by now what its URL is?
bool target_kind_is_known(const struct target_store *s, struct target_kind *k);

#endif
