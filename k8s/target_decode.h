// SPDX-License-Identifier: Apache-2.0
// What a Deployment, StatefulSet or ReplicaSet says about its scale, read from its own text rather than from /scale;
// of objects of other kinds, which version they are.
#ifndef GPUSCALE_K8S_TARGET_DECODE_H
#define GPUSCALE_K8S_TARGET_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/json_span.h"
#include "k8s/scale.h"

struct err;

#define TARGET_NAME_BYTES 254 // of a namespace or an object, with its NUL
#define TARGET_UID_BYTES  40

// Namespace ("" if none) and name. False when there is no usable name.
bool object_decode_name(const char *json, size_t len, char namespace_name[TARGET_NAME_BYTES],
                        char name[TARGET_NAME_BYTES]);

// The object called `name` of a list that was asked for it alone. 1 and *ret_object; 0: the list is empty; -1: it is no
// whole list, or holds something else.
int object_list_find(const char *json, size_t len, const char *name, struct json_span *ret_object);

struct target_fields {
	int32_t spec_replicas, status_replicas, ready_replicas;
	int64_t generation;
	char resource_version[SCALE_RESOURCE_VERSION_BYTES_MAX];
	char uid[TARGET_UID_BYTES];
	char selector[SCALE_SELECTOR_BYTES_MAX]; // as /scale writes it
};
// Of an object of any kind: resource_version, generation and uid; the rest is as of one without spec and status.
// ERR_PROTOCOL.
int target_decode_metadata(const char *json, size_t len, struct target_fields *ret_fields, struct err *e);
// ERR_PROTOCOL, ERR_LIMIT for what /scale could not be either, and for one without a spec.
int target_decode(const char *json, size_t len, struct target_fields *ret_fields, struct err *e);

// Renders a LabelSelector object (matchLabels, matchExpressions) as text, sorted by key; "" for an empty or absent one.
// Kubernetes: apimachinery, LabelSelectorAsSelector, labels.Requirement.String.
int label_selector_render(struct json_span selector, char *out, size_t size, struct err *e);

#endif
