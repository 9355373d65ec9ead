// SPDX-License-Identifier: Apache-2.0
// Requests of commands to an API server: each waits for its reply; a list is fetched page by
// page.
#ifndef GPUSCALE_CLI_OBJECTS_KUBE_PAGES_H
#define GPUSCALE_CLI_OBJECTS_KUBE_PAGES_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct connections;
struct err;
struct json_span;
struct resource_names;
struct scale_ref;
struct target_shape;

// Sends one request, with the retries of the client, and waits. `ret_body` (may be NULL) receives the body of the
// reply. Returns -1 and fills `e` for any status other than 2xx; e->code is the HTTP status.
int kube_request(struct connections *c, const char *method, const char *path, const char *content_type,
                 const char *body, struct buf *ret_body, struct err *e);

#define KUBE_PAGES_OBJECTS        100
#define KUBE_PAGES_CONTINUE_BYTES 4096

// Processes one object of a list. Returns 0, or -1 and *e to stop.
typedef int kube_item_fn(void *arg, struct json_span object, struct err *e);

// A list of objects.
struct kube_pages {
	const char *what;   // for errors: "GPUAutoscalers"
	int pages_max;      // more pages are ERR_LIMIT
	kube_item_fn *item; // called for each object of each page
	// Discards the objects so far, because the server dropped their list and it starts over. NULL: none are kept.
	void (*restart)(void *arg);
};

// Fetches all pages of the collection at `path`. selector: "labelSelector=" or "fieldSelector=" and its value, which is
// encoded here; "": all. Returns 0, or -1 and *e: the errors of kube_request() and item(), ERR_PROTOCOL for a reply
// that is not a list, ERR_LIMIT.
int kube_pages_fetch(struct connections *c, const struct kube_pages *p, const char *path, const char *selector,
                     void *arg, struct err *e);

// Calls item() for each item of the list `json` of `len` bytes, until it returns -1. `what` names the list in errors.
// Returns 0, -1 and *e of item(), or ERR_PROTOCOL when `json` is not a list: that is not an empty one.
int kube_pages_each(const char *what, const char *json, size_t len, kube_item_fn *item, void *arg, struct err *e);

// Fetches what a replica of a scale target needs (k8s/capacity/shape_fetch.h). Returns 0, or -1 and *e; then *ret has
// what was read until then. Call target_shape_done(ret) in any case.
int shape_read(struct connections *c, const struct scale_ref *ref, struct resource_names *names,
               struct target_shape *ret, struct err *e);
// Returns how many GPUs the pod template of the target requests (replica_shape_gpus), or 0 and *e when that is unknown
// or none.
int32_t shape_read_gpus(struct connections *c, const struct scale_ref *ref, struct err *e);

#endif
