// SPDX-License-Identifier: Apache-2.0
// The scale subresource of any kind: read it, and change spec.replicas by a merge-PATCH that carries the
// resourceVersion.
#ifndef GPUSCALE_K8S_SCALE_H
#define GPUSCALE_K8S_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct k8s_client;

#define SCALE_SELECTOR_BYTES_MAX         1024
#define SCALE_RESOURCE_VERSION_BYTES_MAX 64

#define PODS_PAGE               500
#define PODS_MAX                20000
#define PODS_CONTINUE_BYTES_MAX 4096

struct scale_ref { // copied by the functions below
	const char *api_version, *kind, *namespace_name, *name;
};

struct scale {
	int32_t spec_replicas, status_replicas;
	char resource_version[SCALE_RESOURCE_VERSION_BYTES_MAX];
	char selector[SCALE_SELECTOR_BYTES_MAX]; // status.selector, "" if none
};

// Exactly one of scale, error is non-NULL. Called once, from the loop.
typedef void scale_done_fn(void *arg, const struct scale *scale, const struct err *error);

// GET .../scale. The resource's plural is learnt once per apiVersion/kind from discovery and cached in the client.
// An unknown kind is ERR_NOT_FOUND naming the kinds of that group that do have a scale subresource.
int scale_get(struct k8s_client *c, const struct scale_ref *ref, scale_done_fn *done, void *arg, struct err *e);
// PATCH .../scale with {"metadata":{"resourceVersion":..},"spec":{"replicas":..}}, application/merge-patch+json.
// ERR_CONFLICT when somebody else wrote in between: read again, decide again.
int scale_patch(struct k8s_client *c, const struct scale_ref *ref, const char *resource_version, int32_t replicas,
                scale_done_fn *done, void *arg, struct err *e);

struct pod_counts {
	int32_t total;       // all that match, in whatever phase
	int32_t ready;       // condition Ready is True, and not being deleted
	int32_t pending;     // phase Pending, and not being deleted
	int32_t failed;      // phase Failed
	int32_t terminating; // being deleted
};
typedef void pod_counts_done_fn(void *arg, const struct pod_counts *counts, const struct err *error);
// Counts the pods behind a scale's selector (paged list, at most PODS_MAX). ERR_INPUT for an empty selector, which
// would match every pod of the namespace.
int pods_count(struct k8s_client *c, const char *namespace_name, const char *selector, pod_counts_done_fn *done,
               void *arg, struct err *e);

// Decoders of the replies; ERR_PROTOCOL, ERR_LIMIT.
int scale_decode(const char *text, size_t len, struct scale *ret_scale, struct err *e);
// Adds one page of a PodList to *counts; ret_continue is "" on the last page.
int pods_decode_page(const char *text, size_t len, struct pod_counts *counts,
                     char ret_continue[PODS_CONTINUE_BYTES_MAX], struct err *e);
// Is text usable as a namespace or object name in a URL: letters, digits, '-', '.', at most 253, not only dots?
bool scale_name_is_valid(const char *text);

#endif
