// SPDX-License-Identifier: Apache-2.0
// The one table of policy fields. Decoder, defaults, ranges, `check`, `explain`, the CRD and the reference page are
// generated from it.
#ifndef GPUSCALE_POLICIES_SCHEMA_POLICY_SCHEMA_H
#define GPUSCALE_POLICIES_SCHEMA_POLICY_SCHEMA_H

struct schema;

#define POLICY_API_VERSION "gpuscale.dev/v1alpha1"
#define POLICY_KIND        "GPUAutoscaler"
// The value "true" has the same effect as spec.paused or spec.dryRun.
#define POLICY_ANNOTATION_PAUSED  "gpuscale.dev/paused"
#define POLICY_ANNOTATION_DRY_RUN "gpuscale.dev/dry-run"

// Returns the table of the whole document: apiVersion, kind, metadata, spec. Its validate hooks check the rules between
// fields (min <= max, low < high, exactly one of target and watermarks, unique signal names, ...). Decode documents
// with policy_decode(), not with schema_decode(): the table alone leaves some fields as text.
const struct schema *policy_schema(void);

#endif
