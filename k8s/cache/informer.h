// SPDX-License-Identifier: Apache-2.0
// Keeps one resource of the cluster up to date by list and watch. The informer runs one watch per namespace
// while the namespace is wanted. When there are too many namespaces, one watch of all namespaces takes over; where RBAC
// forbids it, each namespace keeps its own watch. A caller that wants every namespace gets the watch of all namespaces
// from the start. A resource without namespaces, such as nodes, has one watch; its objects have the namespace "".
// Invariant: an object that exists is never reported as absent. The informer knows one of three states of each item:
//   unknown   registered, but no list, event or GET has shown it yet, or an event deleted it; the informer waits for it
//             or fetches it
//   present   shown by a list, an event or a GET
//   absent    missing from the reply to a request for it alone, or from a complete list that was requested after the
//             item was registered, with no other report of the item since
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

enum informer_state { INFORMER_UNKNOWN, INFORMER_PRESENT, INFORMER_ABSENT };

// Embedded in the caller's record. The members are private to the informer, which allocates nothing per item.
struct informer_item {
	UT_hash_handle hh;                 // of the informer, by the caller's key
	struct informer_item *prev, *next; // of the namespace
	struct informer_namespace *space;
	struct k8s_call *fetch; // the request in flight for this object alone; NULL: none
	int64_t fetch_after_ms; // monotonic clock; no fetch before this time
	uint64_t version;       // the latest resourceVersion; 0: none, or not a number
	uint32_t shown_own;     // number of the latest list of its namespace that contained it
	uint32_t shown_all;     // number of the latest list of all namespaces that contained it
	uint32_t touched;    // number of the latest list requested when the item was registered or otherwise reported
	unsigned char state; // enum informer_state
	bool is_kept;        // added by informer_keep because it exists; false: registered by the caller
	bool has_floor;      // versions older than `version` are stale
	bool is_fetch_stale; // a list was completed while the fetch was in flight
};

// All callbacks run from the loop, never from within a call to the informer.
struct informer_callbacks {
	// The current object. item is NULL when the object is not registered; the callback may call informer_keep or
	// ignore the object. The callback may remove a kept item. json is valid during the call. namespace_name is ""
	// for an object of a cluster-scoped resource, and when the object lacks a valid namespace; the latter must not
	// be kept, and the list that contains it proves no object absent.
	void (*on_object)(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
	                  const char *json, size_t len);
	// The object does not exist; for a kept item: was deleted or is no longer watched. The callback must remove a
	// kept item.
	void (*on_absent)(void *arg, struct informer_item *item);
	// The state of a registered item became unknown; see informer_ask. May be NULL.
	void (*on_unknown)(void *arg, struct informer_item *item);
	// A list was completed, a fetch was answered, or a watch failed or recovered. May be NULL.
	void (*on_change)(void *arg);
	// The watch of a namespace ("": of all namespaces) failed, or recovered (error is NULL). Code
	// K8S_WATCH_LEFT_OUT: it works, without an object that is too large. May be NULL.
	void (*on_error)(void *arg, const char *namespace_name, const struct err *error);
};

struct informer_options {
	struct k8s_client *client;  // not owned
	const char *group_path;     // "/apis/apps/v1", "/api/v1"; copied
	const char *plural;         // copied
	const char *label_selector; // NULL: all objects; copied
	int own_watches;            // above this number, one watch of all namespaces takes over; 0: never
	bool is_cluster_scoped;     // the resource has no namespaces: only informer_want_all may be called
	struct informer_callbacks callbacks;
	void *arg;
};

// Creates an informer. Sends no request before a namespace is wanted. Returns NULL and *e when memory is exhausted.
struct informer *informer_new(const struct informer_options *options, struct err *e);
// Frees the informer. Call before the client is freed, after every item is removed and every namespace unwanted. NULL
// is fine.
void informer_free(struct informer *i);

// Starts to watch a namespace, or adds a reference to it. Returns NULL and *e: ERR_LIMIT (INFORMER_OWN_WATCHES_MAX),
// ERR_INTERNAL.
struct informer_namespace *informer_want_namespace(struct informer *i, const char *namespace_name, struct err *e);
// Starts to watch all namespaces, or adds a reference to that watch. The result stands for all of them: pass it to
// informer_is_synced, informer_error and informer_unwant, but register no item with it, unless the resource is
// cluster-scoped. Returns NULL and *e: ERR_INTERNAL.
struct informer_namespace *informer_want_all(struct informer *i, struct err *e);
// Drops a reference. Kept items of the namespace are reported absent when no watch covers them any more. Do not call
// from a callback.
void informer_unwant(struct informer_namespace *space);

// Registers an item. key is "NAMESPACE/NAME" and must stay valid as long as the item. The item must be zeroed, and the
// caller must hold a reference to its namespace.
void informer_register(struct informer_namespace *space, struct informer_item *item, const char *key);
// Keeps an object that is not registered. Call only from on_object with item NULL. key as in informer_register. Returns
// -1 when memory is exhausted; the object is then reported with item NULL again.
int informer_keep(struct informer *i, struct informer_item *item, const char *namespace_name, const char *key);
// Keeps an object that a list or GET of the caller reported, with its resourceVersion. The caller must hold a reference
// to its namespace. Unlike informer_keep, it may be called at any time outside of a callback. key as in
// informer_register.
void informer_adopt(struct informer_namespace *space, struct informer_item *item, const char *key, const char *version);
// Removes an item. No callback runs for it any more.
void informer_remove(struct informer_item *item);

struct informer_item *informer_find(const struct informer *i, const char *namespace_name, const char *name);
struct informer_item *informer_first(const struct informer *i); // then item->hh.next

// Fetches an unknown item when no list or event is going to report it. The fetch is a list of one object, so the
// permissions of the watch suffice. Returns true when the item will be known soon; false when the watch is failing or
// the last fetch failed.
bool informer_ask(struct informer_item *item);
// Reports that the caller could not use the object. The informer fetches it again, but not within retry_ms.
void informer_distrust(struct informer_item *item, int64_t retry_ms);
// Fetches an item that the caller has reason to believe is absent, such as a request for it that was answered 404.
// Until the answer its state is unknown.
void informer_verify(struct informer *i, const char *namespace_name, const char *name);
// Records the version that the server returned for the caller's own write. Older versions are stale from then on.
void informer_note_version(struct informer_item *item, const char *version);

// Returns whether the list of the namespace is complete and all changes are being reported.
bool informer_is_synced(const struct informer_namespace *space);
// Returns why the namespace is currently not being watched; NULL: it is. Valid until the loop runs.
const char *informer_error(const struct informer_namespace *space);
// Returns whether changes are being streamed and the server has sent something within the last max_silence_ms.
bool informer_is_streaming(const struct informer_namespace *space, int64_t max_silence_ms);
// Lists again, for a caller that ignored objects that it wants now. on_object has received every object once
// informer_synced_list() exceeds the number returned.
uint32_t informer_list_again(struct informer_namespace *space);
uint32_t informer_synced_list(const struct informer_namespace *space);

struct informer_stats {
	size_t items, watches, unsynced, broken; // broken: watches with an error
	size_t streaming;                        // watches with an open stream
	const char *broken_why;                  // the error of one of them, valid until the loop runs; NULL: none
	uint64_t lists, streams, events, gone, fetches;
};
// Adds the numbers of this informer to *stats.
void informer_add_stats(const struct informer *i, struct informer_stats *stats);

#endif
