// SPDX-License-Identifier: Apache-2.0
// Reads the scale subresource of any kind, and changes spec.replicas by a merge-PATCH with the resourceVersion; or the
// number at a path of the object itself (scale_path.c). Lists and counts the pods of its selector.
#ifndef GPUSCALE_K8S_CLIENT_SCALE_H
#define GPUSCALE_K8S_CLIENT_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json_span.h"
#include "k8s/client/k8s_request.h"
#include "k8s/targets/workload_kind.h"

struct buf;
struct err;

#define SCALE_SELECTOR_BYTES_MAX         1024
#define SCALE_RESOURCE_VERSION_BYTES_MAX 64

#define PODS_PAGE               500
#define PODS_MAX                20000
#define PODS_CONTINUE_BYTES_MAX 4096

#define POD_COST_ANNOTATION   "controller.kubernetes.io/pod-deletion-cost"
#define POD_VICTIM_ANNOTATION "gpuscale.dev/victim"
#define POD_MARK_COST         (-2147483647) // lower than any cost that another client is likely to set

struct scale_ref { // copied by the functions below
	const char *api_version, *kind, *namespace_name, *name;
	const char *path; // where the object has its replicas; NULL: in /scale
};

// Allocates a zeroed struct of `size` bytes that starts with a struct scale_ref, a copy of `ref` with its texts behind
// the struct. Free it with free(). Returns NULL when memory is exhausted.
void *scale_ref_copy(const struct scale_ref *ref, size_t size);

struct scale {
	int32_t spec_replicas, status_replicas; // status: -1: not reported
	char resource_version[SCALE_RESOURCE_VERSION_BYTES_MAX];
	char selector[SCALE_SELECTOR_BYTES_MAX]; // status.selector; "": none
};

// Receives the result of a request. Called once, from the loop. Exactly one of scale and error is non-NULL.
typedef void scale_done_fn(void *arg, const struct scale *scale, const struct err *error);

// Sends GET .../scale, or of the object for a ref with a path. The plural of the resource is fetched once per
// apiVersion and kind (discovery.h). For an unknown kind, the error is ERR_NOT_FOUND and lists the kinds of the group
// that have a scale subresource. Returns 0, or -1 and *e; then done is not called.
int scale_get(struct k8s_client *c, const struct scale_ref *ref, scale_done_fn *done, void *arg, struct err *e);
// Sends GET of the object itself, also for a ref without a path. Returns as scale_get; done is as for k8s_request.
int scale_get_object(struct k8s_client *c, const struct scale_ref *ref, k8s_done_fn *done, void *arg, struct err *e);
// Sends PATCH .../scale with {"metadata":{"resourceVersion":..},"spec":{"replicas":..}}, application/merge-patch+json.
// For a ref with a path, sends GET and PATCH of the object. The error is ERR_CONFLICT when the object was changed in
// between: read it again and decide again. Returns as scale_get.
int scale_patch(struct k8s_client *c, const struct scale_ref *ref, const char *resource_version, int32_t replicas,
                scale_done_fn *done, void *arg, struct err *e);

struct pod_counts {
	int32_t total;       // all matching pods, in any phase
	int32_t ready;       // condition Ready is True, and not being deleted
	int32_t pending;     // phase Pending, and not being deleted
	int32_t failed;      // phase Failed
	int32_t terminating; // being deleted
};
typedef void pod_counts_done_fn(void *arg, const struct pod_counts *counts, const struct err *error);
// The kinds that the HPA distinguishes. POD_KIND_UNREADY: runs, but its Ready condition is not True; POD_KIND_ENDED:
// phase Failed or Succeeded; POD_KIND_DELETED: being deleted, in any phase.
enum pod_kind { POD_KIND_READY, POD_KIND_UNREADY, POD_KIND_PENDING, POD_KIND_ENDED, POD_KIND_DELETED, POD_KIND__COUNT };
enum pod_kind pod_kind_of(bool is_deleted, const char *phase, bool is_ready);
// What decides which pods a controller of replicas deletes first.
struct pod_removal {
	const char *resource_version; // in the list's arena
	bool is_by_cost;              // the controller of the pod reads the deletion cost
	bool has_cost;                // another client set the cost
	int32_t cost;                 // that cost; 0 without one
	int64_t marked_ms;            // of pod_mark(), in ms since the epoch; 0: none
};
struct pod_info {
	const char *name; // in the list's arena
	enum pod_kind kind;
	struct group_member member;
	const struct pod_removal *removal; // in the list's arena; NULL: not read
};
struct pod_list {
	const struct workload_kind
	        *workload;      // kind of the target, set by the caller of pods_list(); NULL: no groups are read
	bool reads_removal;     // set by the caller of pods_list(): pod_info.removal
	struct pod_info *items; // by name, as the server sorts them
	size_t n, cap;
	struct arena names;
};
void pod_list_init(struct pod_list *l);
// Adds a pod; the name is copied. Returns 0, or -1 and *e: ERR_LIMIT, ERR_INTERNAL.
int pod_list_add(struct pod_list *l, const char *name, enum pod_kind kind, struct err *e);
// Frees the contents. Call pod_list_init before the next use.
void pod_list_done(struct pod_list *l);

// Counts the pods that a selector matches, at most PODS_MAX, with a paged list, and fills *list (initialized and
// empty), which must stay valid until done is called. list may be NULL. Returns 0, or -1 and *e; then done is not
// called. ERR_INPUT for an empty selector, which would match every pod of the namespace.
int pods_list(struct k8s_client *c, const char *namespace_name, const char *selector, struct pod_list *list,
              pod_counts_done_fn *done, void *arg, struct err *e);

// Marks a pod, so that the controller of its replicas deletes it before others, and removes the mark again. The mark is
// the deletion cost, and an annotation of our own that states when it was set: a process that starts later recognizes
// it. Kubernetes: pkg/apis/core/annotation_key_constants.go, PodDeletionCost.
//
// Sends a PATCH of the pod, whose pod_info.removal was read. marked_ms: when the mark is set, in ms since the epoch; 0:
// removes it. A deletion cost that another client set is not changed: call with marked_ms only for a pod without one.
// The error of done is ERR_CONFLICT when the pod was changed since it was read. Returns 0, or -1 and *e; then done is
// not called.
int pod_mark(struct k8s_client *c, const char *namespace_name, const struct pod_info *pod, int64_t marked_ms,
             k8s_done_fn *done, void *arg, struct err *e);

// Decode replies. Return 0, or -1 and *e: ERR_PROTOCOL, ERR_LIMIT.
int scale_decode(const char *text, size_t len, struct scale *ret_scale, struct err *e);
// Adds one page of a PodList to *counts and, unless NULL, to *list; ret_continue is "" on the last page.
int pods_decode_page(const char *text, size_t len, struct pod_counts *counts, struct pod_list *list,
                     char ret_continue[PODS_CONTINUE_BYTES_MAX], struct err *e);

// The scale of objects without /scale (scale_path.c): the number at a path (base/json/json_path.h) of the object
// itself, and a JSON patch (RFC 6902) of it.
//
// Reads the scale of an object at ref->path. status_replicas is -1 when the object does not report them. Returns 0, or
// -1 and *e: ERR_PROTOCOL for an object without a resourceVersion, ERR_INPUT when the path does not lead to a number of
// replicas.
int scale_path_read(const struct scale_ref *ref, struct json_span object, struct scale *ret_scale, struct err *e);

// Reads the replicas that an object of any kind reports as ready: -1 when it reports none. *ret_is_stale:
// status.observedGeneration shows that they were counted before the last change of its spec.
int32_t scale_path_ready(const struct scale_ref *ref, struct json_span object, bool *ret_is_stale);

// Writes the patch that sets the replicas of `object`, and that the server refuses with a conflict when the object has
// changed since. Returns as scale_path_read; ERR_CONFLICT when `object` is not of that resourceVersion.
int scale_path_write_patch(const struct scale_ref *ref, struct json_span object, const char *resource_version,
                           int32_t replicas, struct buf *body, struct err *e);

#endif
