// SPDX-License-Identifier: Apache-2.0
// A policy is rules only; a binding applies it to an object that is scaled. One version of a policy may have several
// bindings.
#ifndef GPUSCALE_POLICIES_SCHEMA_BINDING_H
#define GPUSCALE_POLICIES_SCHEMA_BINDING_H

#include <stdbool.h>
#include <stddef.h>

#include "policies/engine/policy.h"

// An object in the namespace of its policy. `path`: where it has its replicas (base/json/json_path.h); NULL: where its
// kind has them.
struct scale_target {
	const char *api_version, *kind, *name, *path;
};

struct binding { // owns nothing
	const struct policy *policy;
	const struct scale_target *target;
	const char *key; // "KIND/NAME" of the target; NULL: the only binding, of spec.scaleTargetRef
};

// A GPUAutoscaler document: its rules and the target that it names. The policy comes first, so that the rows of the
// schema table name the fields of struct policy.
struct policy_document {
	struct policy policy;
	struct scale_target target; // spec.scaleTargetRef
};

// Returns whether both are the same number of replicas of one namespace.
bool scale_target_equals(const struct scale_target *a, const struct scale_target *b);
// Orders the keys of bindings of one policy, as strcmp() does. NULL comes first.
int binding_key_compare(const char *a, const char *b);
// Writes "NAME", or "NAME/KIND/TARGET" for one of several bindings, to out, which has `size` bytes; cuts what does not
// fit. `name` is the name of the policy, with or without its namespace. Returns the length that it needs.
size_t binding_format(char *out, size_t size, const char *name, const char *key);

#endif
