// SPDX-License-Identifier: Apache-2.0
// Fetches a list from an API server page by page, for a command.
#ifndef GPUSCALE_CLI_OBJECTS_KUBE_PAGES_H
#define GPUSCALE_CLI_OBJECTS_KUBE_PAGES_H

#include <stddef.h>

struct buf;
struct err;
struct json_span;
struct kube_session;

#define KUBE_PAGES_OBJECTS        100
#define KUBE_PAGES_CONTINUE_BYTES 4096

// Processes one object of a list. Returns 0, or -1 and *e to stop.
typedef int kube_item_fn(void *arg, struct json_span object, struct err *e);

struct kube_pages {
	const char *path;     // of the collection
	const char *selector; // "labelSelector=" or "fieldSelector=" and its value, encoded; "": all
	const char *what;     // for errors: "GPUAutoscalers"
	int pages_max;        // more pages are ERR_LIMIT
	kube_item_fn *item;   // called for each object of each page
	// Discards the objects so far, because the server dropped their list and it starts over.
	void (*restart)(void *arg);
	void *arg;
};

// Fetches all pages. Returns 0, or -1 and *e: the errors of kube_session_request and item(), ERR_PROTOCOL for a reply
// that is not a list, ERR_LIMIT.
int kube_pages_fetch(struct kube_session *session, const struct kube_pages *p, struct err *e);

// Calls item() for each item of the list `json` of `len` bytes, until it returns -1. `what` names the list in errors.
// Returns 0, -1 and *e of item(), or ERR_PROTOCOL when `json` is not a list: that is not an empty one.
int kube_pages_each(const char *what, const char *json, size_t len, kube_item_fn *item, void *arg, struct err *e);

// Appends `text` to `path`, percent-encoded for a query.
void kube_pages_encode(struct buf *path, const char *text);

#endif
