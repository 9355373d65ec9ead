// SPDX-License-Identifier: Apache-2.0
// A policy is rules only; a binding applies it to an object that is scaled. One version of a policy may have several
// bindings.
#ifndef GPUSCALE_POLICIES_SCHEMA_BINDING_H
#define GPUSCALE_POLICIES_SCHEMA_BINDING_H

#include <stdbool.h>

#include "policies/engine/policy.h"

// An object with a scale subresource, in the namespace of its policy.
struct scale_target {
	const char *api_version, *kind, *name;
};

struct binding { // owns neither
	const struct policy *policy;
	const struct scale_target *target;
};

// A GPUAutoscaler document: its rules and the target that it names. The policy comes first, so that the rows of the
// schema table name the fields of struct policy.
struct policy_document {
	struct policy policy;
	struct scale_target target; // spec.scaleTargetRef
};

// Returns whether both are the same object of one namespace.
bool scale_target_equals(const struct scale_target *a, const struct scale_target *b);

#endif
