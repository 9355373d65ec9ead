// SPDX-License-Identifier: Apache-2.0
// Lists and watches one collection: reports the existing objects, then every change. Handles the pages of a list,
// bookmarks, resumption by resourceVersion, a new list after 410 Gone and after the server went back to earlier
// versions (a restored backup), and backoff with jitter. Between changes it sends no request: one stream is open, and
// is renewed every few minutes when the server ends it. The informer is its only user that keeps objects
// (docs/decisions/0018-one-informer.md). Kubernetes: API concepts, "Efficient detection of changes"; client-go:
// tools/cache/reflector.go.
#ifndef GPUSCALE_K8S_CACHE_WATCH_H
#define GPUSCALE_K8S_CACHE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct k8s_client;
struct k8s_watch;

#define K8S_WATCH_PAGE 100 // objects of one page of a list
// Of one object or event. etcd stores at most 1.5 MiB, but the objects of Kubernetes itself in a form that is several
// times shorter than their JSON, so a tenant can create a pod above this limit.
#define K8S_WATCH_OBJECT_BYTES_MAX (2 * 1024 * 1024)
#define K8S_WATCH_LEFT_OUT         (-1) // code of the error that reports such an object: the watch works
#define K8S_WATCH_OBJECTS_MAX      200000
#define K8S_WATCH_TIMEOUT_MS       300000 // a stream is requested for this time, plus up to as much again at random
#define K8S_WATCH_BACKOFF_FIRST_MS 800
#define K8S_WATCH_BACKOFF_MAX_MS   30000

// All callbacks run from the loop, never from k8s_watch_new. json[0..len) is the text of one object (not
// NUL-terminated), valid during the call: complete JSON with a metadata.name of 1 to 253 bytes and labels whose values
// are strings, if any; a list or stream that contains anything else fails. metadata.managedFields is not removed:
// decoders skip unknown fields.
struct k8s_watch_callbacks {
	// Called before the first page of a list is requested. Until on_synced, on_object receives every object that
	// exists as of some moment after this call. Called again before on_synced when the list has to start over;
	// on_object may then receive objects twice.
	void (*on_list)(void *arg);
	// The current object. Objects of a list have no kind and apiVersion.
	void (*on_object)(void *arg, const char *json, size_t len);
	// The last state of an object that was deleted.
	void (*on_deleted)(void *arg, const char *json, size_t len);
	// The list is complete. Changes follow.
	void (*on_synced)(void *arg);
	// Listing or watching fails and is retried; NULL: it works again. Called when the first attempt fails, when the
	// message changes and when it works again, not for each attempt. A stream that breaks and can be resumed is not
	// an error. Code K8S_WATCH_LEFT_OUT: the watch works, but an object is too large and was left out; reported
	// before on_synced of every list that leaves one out. May be NULL.
	void (*on_error)(void *arg, const struct err *error);
};

struct k8s_watch_options {
	struct k8s_client *client; // not owned
	const char *path;          // the collection: "/apis/apps/v1/namespaces/ns/deployments"; copied
	const char *label_selector, *field_selector; // NULL: none; copied
	struct k8s_watch_callbacks callbacks;
	void *arg;
};

// Creates a watch and starts it. Returns NULL and *e: ERR_INPUT for an invalid path, ERR_LIMIT, ERR_INTERNAL.
struct k8s_watch *k8s_watch_new(const struct k8s_watch_options *options, struct err *e);
// Frees the watch and ends its stream; no callback runs afterwards. Call before the k8s_client is freed. It may be
// called from a callback of a different watch. NULL is fine.
void k8s_watch_free(struct k8s_watch *w);

// Lists again soon, for a caller that ignored objects that it wants now. Of the callbacks of this watch, only on_synced
// may call it.
void k8s_watch_relist(struct k8s_watch *w);

struct k8s_watch_stats {
	uint64_t lists, streams;    // requested
	uint64_t events, bookmarks; // received
	uint64_t gone;              // versions that the server no longer or not yet has, each followed by a new list
	uint64_t too_large;         // objects left out
	bool is_synced;             // a list was completed
	bool is_streaming;          // a stream is open now
	int64_t last_heard_mono_ms; // when the server last sent a byte; 0: never
};
void k8s_watch_get_stats(const struct k8s_watch *w, struct k8s_watch_stats *ret_stats);

#endif
