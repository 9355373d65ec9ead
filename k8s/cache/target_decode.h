// SPDX-License-Identifier: Apache-2.0
// Decodes the scale of a Deployment, StatefulSet or ReplicaSet from the object itself rather than from /scale, and the
// version of objects of other kinds.
#ifndef GPUSCALE_K8S_CACHE_TARGET_DECODE_H
#define GPUSCALE_K8S_CACHE_TARGET_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/json_span.h"
#include "k8s/client/scale.h"

struct err;

#define TARGET_NAME_BYTES 254 // name of a namespace or an object, with its NUL
#define TARGET_UID_BYTES  40

// Reads the namespace ("" when there is none) and the name of an object. Returns false when it has no valid name.
bool object_decode_name(const char *json, size_t len, char namespace_name[TARGET_NAME_BYTES],
                        char name[TARGET_NAME_BYTES]);

// Returns a resourceVersion as a number; 0: not a number. Kubernetes compares the versions of one resource as numbers
// (API concepts, "Resource versions").
uint64_t k8s_version_number(const char *text);

// Finds the object called `name` in a list that was requested for it alone. Returns 1 and *ret_object; 0 when the list
// is empty; -1 when it is not a complete list or contains another object.
int object_list_find(const char *json, size_t len, const char *name, struct json_span *ret_object);

struct target_fields {
	int32_t spec_replicas, status_replicas, ready_replicas;
	int64_t generation;
	char resource_version[SCALE_RESOURCE_VERSION_BYTES_MAX];
	char uid[TARGET_UID_BYTES];
	char selector[SCALE_SELECTOR_BYTES_MAX]; // as /scale writes it
};
// Decodes resource_version, generation and uid of an object of any kind; the other fields get the values of an object
// without spec and status. Returns 0, or -1 and *e: ERR_PROTOCOL.
int target_decode_metadata(const char *json, size_t len, struct target_fields *ret_fields, struct err *e);
// Decodes all fields of an object of apps/v1. Returns 0, or -1 and *e: ERR_PROTOCOL, also for an object without a spec,
// or ERR_LIMIT.
int target_decode(const char *json, size_t len, struct target_fields *ret_fields, struct err *e);

// Renders a LabelSelector object (matchLabels, matchExpressions) to out, sorted by key; "" for an empty or absent one.
// Returns 0, or -1 and *e: ERR_PROTOCOL, ERR_LIMIT.
// Kubernetes: apimachinery, LabelSelectorAsSelector, labels.Requirement.String.
int label_selector_render(struct json_span selector, char *out, size_t size, struct err *e);

#endif
