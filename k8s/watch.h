// SPDX-License-Identifier: Apache-2.0
// List and watch of one collection: what is there now, then every change, for as long as it is wanted. Pages of a list,
// bookmarks, resumption by resourceVersion, a new list after 410 Gone, and jittered backoff are its business. Between
// changes it makes no request: one stream is open, renewed every few minutes as the server ends it.
// Kubernetes: API concepts, "Efficient detection of changes"; client-go: tools/cache/reflector.go.
#ifndef GPUSCALE_K8S_WATCH_H
#define GPUSCALE_K8S_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct k8s_client;
struct k8s_watch;

#define K8S_WATCH_PAGE             100               // objects of one page of a list
#define K8S_WATCH_OBJECT_BYTES_MAX (2 * 1024 * 1024) // of one object or event; the API server's own ceiling is 1.5 MiB
#define K8S_WATCH_OBJECTS_MAX      200000
#define K8S_WATCH_TIMEOUT_MS       300000 // a stream is asked to end after this, plus up to as much again at random
#define K8S_WATCH_BACKOFF_FIRST_MS 800
#define K8S_WATCH_BACKOFF_MAX_MS   30000

// All are called from the loop, never from k8s_watch_new. json is one object's text (not NUL-terminated), valid during
// the call: whole JSON, with a metadata.name of 1 to 253 bytes and labels that are texts, if any; a list or stream with
// anything else in it fails. Objects with metadata.managedFields are handed on as they come: decoders skip what they do
// not know.
struct k8s_watch_callbacks {
	// A list begins: until on_synced every object that is there is handed to on_object, and what is not is gone.
	// Called again before on_synced when the list has to begin anew; objects may then come twice.
	void (*on_list)(void *arg);
	// An object as it is now. Those of a list have no kind and apiVersion of their own.
	void (*on_object)(void *arg, const char *json, size_t len);
	// An object that was deleted, as it was last.
	void (*on_deleted)(void *arg, const char *json, size_t len);
	// The list is complete; changes follow.
	void (*on_synced)(void *arg);
	// It cannot list or watch now, and goes on trying; NULL: it works again. Called when this begins, changes its
	// message or ends, not at every try. A stream that breaks is none while it can be resumed. ERR_LIMIT: it works,
	// but an object is left out for its size. May be NULL.
	void (*on_error)(void *arg, const struct err *error);
};

struct k8s_watch_options {
	struct k8s_client *client; // not owned
	const char *path;          // of the collection: "/apis/apps/v1/namespaces/ns/deployments"; copied
	const char *label_selector, *field_selector; // NULL: none; copied
	struct k8s_watch_callbacks callbacks;
	void *arg;
};

// Starts at once. NULL and *e for unusable arguments, or when memory ends.
struct k8s_watch *k8s_watch_new(const struct k8s_watch_options *options, struct err *e);
// Ends the stream; no callback runs any more. NULL is fine. May be called from a callback of another watch, not of its
// own. Before the k8s_client is freed.
void k8s_watch_free(struct k8s_watch *w);

// Lists anew, soon: for an owner that kept only a part and now wants more. Not from its own callbacks.
void k8s_watch_relist(struct k8s_watch *w);

struct k8s_watch_stats {
	uint64_t lists, streams;    // begun
	uint64_t events, bookmarks; // received
	uint64_t gone;              // 410s, each led to a new list
	uint64_t too_large;         // objects left out
	bool is_synced;             // a list was completed once
	bool is_streaming;          // a stream is open now
	int64_t last_heard_mono_ms; // last byte from the server; 0 = never
};
void k8s_watch_get_stats(const struct k8s_watch *w, struct k8s_watch_stats *ret_stats);

#endif
