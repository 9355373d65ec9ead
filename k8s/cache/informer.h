// SPDX-License-Identifier: Apache-2.0
// Keeps one resource of the cluster up to date by list and watch. A caller adds items: each stands for one object, for
// all objects of a namespace, or for all objects. The informer runs one watch per namespace while the namespace has an
// item that needs it. When there are too many namespaces, one watch of all namespaces takes over; where RBAC forbids
// it, each namespace keeps its own watch. An item for all objects starts the watch of all namespaces at once. A
// resource without namespaces, such as nodes, has one watch; its objects have the namespace "". Invariant: an object
// that exists is never reported as absent. The informer knows one of three states of each object:
//   unknown   added, but no list, event or GET has shown it yet, or an event deleted it; the informer waits for it or
//             fetches it
//   present   shown by a list, an event or a GET
//   absent    missing from the reply to a request for it alone, or from a complete list that was requested after the
//             item was added, with no other report of the item since
// docs/decisions/0018-one-informer.md gives the reasons; test/unit/test_informer_law.c checks the invariant.
#ifndef GPUSCALE_K8S_CACHE_INFORMER_H
#define GPUSCALE_K8S_CACHE_INFORMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"

struct err;
struct informer;
struct informer_item;
struct informer_namespace;
struct k8s_call;
struct k8s_client;

#define INFORMER_KEY_BYTES       512 // "NAMESPACE/NAME", with its NUL
#define INFORMER_OWN_WATCHES_MAX 512 // namespaces that keep their own watch; objects in further ones are not watched
#define INFORMER_FETCH_RETRY_MS  30000
#define INFORMER_RESOURCE_BYTES  320 // "/apis/GROUP/VERSION" and the plural, each with a NUL

enum informer_object_state { INFORMER_UNKNOWN, INFORMER_PRESENT, INFORMER_ABSENT };

enum informer_role {
	INFORMER_WANTED,    // one object, which may not exist
	INFORMER_KEPT,      // one object that exists; the callbacks remove the item when the object is gone
	INFORMER_NAMESPACE, // all objects of a namespace, or all objects
};

// Embedded in the caller's record, and zeroed before informer_put. The members are private to the informer, which
// allocates nothing per object.
struct informer_item {
	UT_hash_handle hh;                 // of the informer, by the caller's key
	struct informer_item *prev, *next; // of the namespace
	struct informer_namespace *space;  // NULL: not added
	struct k8s_call *fetch;            // the request in flight for this object alone; NULL: none
	int64_t fetch_after_ms;            // monotonic clock; no fetch before this time
	uint64_t version;                  // the latest resourceVersion; 0: none, or not a number
	uint32_t shown_own;                // number of the latest list of its namespace that contained it
	uint32_t shown_all;                // number of the latest list of all namespaces that contained it
	uint32_t touched;    // number of the latest list requested when the item was added or otherwise reported
	unsigned char state; // enum informer_object_state
	unsigned char role;  // enum informer_role
	bool has_floor;      // versions older than `version` are stale
	bool is_fetch_stale; // a list was completed while the fetch was in flight
};

// All callbacks run from the loop, except on_unknown.
struct informer_callbacks {
	// The current object. item is NULL when the object was not added; the callback may add it with version "" or
	// ignore the object. The callback may remove a kept item. json is valid during the call. namespace_name is ""
	// for an object of a cluster-scoped resource, and when the object lacks a valid namespace; the latter must not
	// be added, and the list that contains it proves no object absent.
	void (*on_object)(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
	                  const char *json, size_t len);
	// The object does not exist; for a kept item: was deleted or is no longer watched. The callback must remove a
	// kept item.
	void (*on_absent)(void *arg, struct informer_item *item);
	// The state of a wanted object became unknown; also called from informer_refetch. May be NULL.
	void (*on_unknown)(void *arg, struct informer_item *item);
	// A list was completed, a fetch was answered, or a watch failed or recovered. May be NULL.
	void (*on_change)(void *arg);
	// A watch failed, or recovered (error is NULL). what names it: "pods in namespace x", "pods in all namespaces".
	// Code K8S_WATCH_LEFT_OUT: it works, without an object that is too large. May be NULL.
	void (*on_error)(void *arg, const char *what, const struct err *error);
};

struct informer_options {
	struct k8s_client *client;  // not owned
	const char *group_path;     // "/apis/apps/v1", "/api/v1"; copied
	const char *plural;         // copied
	const char *label_selector; // NULL: all objects; copied
	int own_watches;            // above this number, one watch of all namespaces takes over; 0: never
	bool is_cluster_scoped;     // the resource has no namespaces: keys start with "/"
	struct informer_callbacks callbacks;
	void *arg;
};

// Creates an informer. Sends no request before an item is added. Returns NULL and *e when memory is exhausted.
struct informer *informer_new(const struct informer_options *options, struct err *e);
// Frees the informer. Call before the client is freed, after every item is removed. NULL is fine.
void informer_free(struct informer *i);

// Adds an item, or sets the version of an added one. The parts of `key` are separated by a slash:
//   "NAMESPACE/NAME"  One object. version NULL: the object may not exist; its namespace is watched as long as the item
//                     is added. version "": on_object is reporting the object, and the caller keeps it. Any other
//                     version: the resourceVersion in which a reply to the caller's own request showed the object,
//                     whose namespace is watched; versions older than it are stale from then on. The key must stay
//                     valid as long as the item.
//   "NAMESPACE/"      All objects of a namespace, which on_object reports.
//   "/"               All objects.
// Only items of the first kind with a version may be added from a callback. Returns 0, or -1 and *e: ERR_LIMIT
// (INFORMER_OWN_WATCHES_MAX), ERR_INTERNAL. An object with a version is always added.
int informer_put(struct informer *i, struct informer_item *item, const char *key, const char *version, struct err *e);
// For on_object: allocates a zeroed record of `size` bytes that starts with an item, and adds it with version "". Its
// key, item.hh.key, is in the same allocation. The caller frees the record with free() after informer_remove(). Aborts
// when memory is exhausted (base/alloc.h).
void *informer_keep(struct informer *i, size_t size, const char *namespace_name, const char *name);
// Removes an item; no callback runs for it any more. An item that was not added is fine. When the namespace of a
// removed item needs no watch any more, its kept items are reported absent; so only kept items may be removed from a
// callback.
void informer_remove(struct informer_item *item);

// Returns the item of an object; NULL: none.
struct informer_item *informer_get(const struct informer *i, const char *namespace_name, const char *name);
// Returns the first item of an object; the others follow as item->hh.next. NULL: none.
struct informer_item *informer_list(const struct informer *i);

// Fetches an object of unknown state when no list or event is going to report it. The fetch is a list of one object, so
// the permissions of the watch suffice. A caller that could not use a known object, or has reason to believe that it is
// absent (such as a request for it that was answered 404), makes its state unknown by the call; a positive after_ms is
// the time until which it is not fetched. Returns true when the object will be known soon; false when the watch is
// failing, the last fetch failed, or the object is fetched later.
// For a namespace: lists it again, for a caller that ignored objects that it wants now. Returns true.
bool informer_refetch(struct informer_item *item, int64_t after_ms);

// State of one watch, or sums of several.
struct informer_state {
	size_t items, watches;
	size_t unsynced;            // watches without a complete list; other ones report all changes
	size_t broken;              // watches with an error
	size_t streaming;           // watches with an open stream
	const char *broken_why;     // the error of one of them, valid until the loop runs; NULL: none
	uint32_t requested_list;    // number of the latest list that the informer requested
	uint32_t synced_list;       // of one watch: on_object has received all objects of the list of this number
	int64_t last_heard_mono_ms; // of one watch: when the server last sent a byte; 0: never
	uint64_t lists, streams, events, gone, fetches;
};
// Returns the state of the watch that reports an added item; item NULL: of all watches. Fast, and allocates nothing.
struct informer_state informer_get_state(const struct informer *i, const struct informer_item *item);
// Adds the state of all watches of an informer to a sum over several. NULL is fine.
void informer_add_state(const struct informer *i, struct informer_state *sum);

#endif
