// SPDX-License-Identifier: Apache-2.0
// The one table of policy fields: decoder, defaults, ranges, `check`, `explain`, and later CRD and reference page come
// from it.
#ifndef GPUSCALE_POLICIES_POLICY_SCHEMA_H
#define GPUSCALE_POLICIES_POLICY_SCHEMA_H

#include "base/schema.h"
#include "policies/policy.h"

#define POLICY_API_VERSION       "gpuscale.dev/v1alpha1"
#define POLICY_KIND              "GPUAutoscaler"
#define POLICY_ANNOTATION_PAUSED "gpuscale.dev/paused" // "true" pauses as spec.paused does

// Root object: apiVersion, kind, metadata, spec. Decodes straight into struct policy; its validate hooks hold the
// cross-field rules (min <= max, low < high, exactly one of target and watermarks, duplicate signal names, ...).
// Use policy_decode() rather than schema_decode() with it.
const struct schema *policy_schema(void);

// Second half of decoding, while the document still lives: `combine` from its text, `paused` from the annotation.
void policy_settle(struct policy *policy);

// One document -> *policy (zeroed by the caller). Strings and lists live in `a`; the document is not needed afterwards.
// 0, or -1 with the faults added to errors.
static inline int policy_decode(const struct doc_node *node, struct policy *policy, struct arena *a,
                                struct schema_errors *errors)
{
	int rc = schema_decode(policy_schema(), node, policy, a, errors, "");
	policy_settle(policy);
	return rc;
}

#endif
