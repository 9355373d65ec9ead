// SPDX-License-Identifier: Apache-2.0
// What the files of the store of targets share; nobody else includes this.
//   target_store.c   what is known of each target, who waits for it, the public face
//   target_watch.c   the watches of kinds and namespaces that feed it
#ifndef GPUSCALE_K8S_TARGET_STORE_PRIVATE_H
#define GPUSCALE_K8S_TARGET_STORE_PRIVATE_H

#include <uthash.h>
#include <utlist.h>

#include "base/err.h"
#include "k8s/pod_store.h"
#include "k8s/target_decode.h"
#include "k8s/target_store.h"

#define TARGET_VERSION_BYTES 32 // of etcd's 20 digits; a longer one is not kept, and its target read by GET

enum target_kind { TARGET_DEPLOYMENT, TARGET_STATEFUL_SET, TARGET_REPLICA_SET, TARGET_KIND__COUNT };
extern const struct target_kind_row {
	const char *kind, *plural;
} target_kinds[TARGET_KIND__COUNT];

struct target_watch {
	struct target_watch *prev, *next;
	struct target_store *store;
	enum target_kind kind;
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
	struct target_watch *watch;
	struct target_store *store;
	struct k8s_call *fetch; // wanted after the list had come: read once by itself
	int64_t fetch_after_ms; // 0 = at once
	uint64_t seen;          // number of the latest list it was in
	int refs;
	bool is_known, exists;
	bool is_noted; // the version is that of our own write, whose event may not have come
	int32_t spec_replicas, status_replicas, ready_replicas;
	int64_t generation;
	char resource_version[TARGET_VERSION_BYTES], uid[TARGET_UID_BYTES];
	char *selector; // NULL = ""
	int pods_refs;
	struct pod_set *pods; // NULL: not wanted, or they cannot be had
	char key[];           // kind digit, namespace, '/', name
};

struct target_store {
	struct target_store_options options;
	struct target_record *records; // hash
	struct target_watch *watches;
	struct target_watch *all[TARGET_KIND__COUNT]; // of these the one of all namespaces
	int n_watches[TARGET_KIND__COUNT];
	uint64_t lists;
	struct target_waiter *waiters;
	struct event *wake;
	struct pod_store *pods;
	bool is_stopped;
	struct target_store_stats stats;
};

// ---- target_store.c ----
struct target_record *target_find(const struct target_store *s, enum target_kind kind, const char *namespace_name,
                                  const char *name);
// What the object's text says of it; what cannot be used makes it unknown.
void target_apply(struct target_record *r, const char *json, size_t len);
void target_set_absent(struct target_record *r);
// Who waits is called soon, if what it waits for is there.
void target_store_wake(struct target_store *s);

// ---- target_watch.c ----
// The watch that a target belongs to, started when there is none. NULL and *e.
struct target_watch *target_watch_of(struct target_store *s, enum target_kind kind, const char *namespace_name,
                                     struct err *e);
// It has no records any more.
void target_watch_free(struct target_watch *w);

#endif
