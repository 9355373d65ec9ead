// SPDX-License-Identifier: Apache-2.0
// Decodes objects of the API server to policies: GPUAutoscalers, with their metadata, and ScaledObjects of KEDA.
#ifndef GPUSCALE_CONTROLLER_SOURCE_POLICY_OBJECT_H
#define GPUSCALE_CONTROLLER_SOURCE_POLICY_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "controller/source/policy_store.h"

struct arena;
struct buf;
struct convert_live;
struct policy_document;
struct schema_errors;

#define POLICY_OBJECT_NAMESPACE_MAX 63
#define POLICY_OBJECT_NAME_MAX      253

struct policy_object {
	char namespace_name[POLICY_OBJECT_NAMESPACE_MAX + 1], name[POLICY_OBJECT_NAME_MAX + 1]; // "": absent or invalid
	struct policy_identity identity;                                                        // zero: absent
	uint64_t fingerprint; // of the parts that define the policy (policy_ref.h), without status
};

// Reads the metadata of an object, which may be of any kind and in invalid JSON; leaves the fingerprint 0. Adds times
// and a generation that are invalid to `errors`.
void policy_object_identify(const char *json, size_t len, struct policy_object *ret_object,
                            struct schema_errors *errors);

// Decodes the JSON text of one object into *ret_object and *ret_document (both overwritten). Ignores the fields that
// Kubernetes adds to metadata, and the status. A field of spec that this version does not know, because the object was
// admitted under another version of the CRD, is added to `unknown` as a warning and has no effect; anything else that
// is invalid in a file is an error here too, and so is invalid JSON. Loads the time zones of schedules. Nothing points
// into the text afterwards; temporary memory is freed before the call returns. Returns 0, or -1 with the errors added
// to `errors`. Fills *ret_object as far as possible even then, also from invalid JSON: name and namespace are "" only
// when the object has no valid ones, so that an invalid policy can still get a status and is not mistaken for a deleted
// one.
int policy_object_decode(const char *json, size_t len, struct arena *a, struct policy_object *ret_object,
                         struct policy_document *ret_document, struct schema_errors *errors,
                         struct schema_errors *unknown);
// Appends the errors as one line: "spec.maxReplicas: must be ..; spec.signals[0].query: ..".
void policy_object_print_errors(const struct schema_errors *errors, struct buf *out);

// Converts a ScaledObject to a policy, through the text that `gpuscale convert` prints for it.
// Decodes the JSON text of one ScaledObject into `body`, which is fresh. Nothing points into the text afterwards.
// Returns 0, or -1 with the reasons appended to `faults`: a trigger, a server or an authentication that is not
// supported, or what is invalid in the resulting policy.
int scaled_object_decode(const char *json, size_t len, const struct convert_live *live, struct policy_ref *body,
                         struct buf *faults);

#endif
