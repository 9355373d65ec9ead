// SPDX-License-Identifier: Apache-2.0
// The one table of policy fields: decoder, defaults, ranges, `check`, `explain`, and later CRD and reference page come
// from it.
#ifndef GPUSCALE_POLICIES_POLICY_SCHEMA_H
#define GPUSCALE_POLICIES_POLICY_SCHEMA_H

struct schema;

#define POLICY_API_VERSION "gpuscale.dev/v1alpha1"
#define POLICY_KIND        "GPUAutoscaler"

// Root object: apiVersion, kind, metadata, spec. Decodes straight into struct policy; its validate hook holds the
// cross-field rules (min <= max, low < high, exactly one of target and watermarks, duplicate signal names, ...).
const struct schema *policy_schema(void);

#endif
