// SPDX-License-Identifier: Apache-2.0
// The one table of policy fields. Decoder, defaults, ranges, `check`, `explain`, the CRD and the reference page are
// generated from it.
#ifndef GPUSCALE_POLICIES_SCHEMA_POLICY_SCHEMA_H
#define GPUSCALE_POLICIES_SCHEMA_POLICY_SCHEMA_H

struct arena;
struct doc_node;
struct policy_document;
struct schema;
struct schema_errors;

#define POLICY_API_VERSION "gpuscale.dev/v1alpha1"
#define POLICY_KIND        "GPUAutoscaler"
// The value "true" has the same effect as spec.paused or spec.dryRun.
#define POLICY_ANNOTATION_PAUSED  "gpuscale.dev/paused"
#define POLICY_ANNOTATION_DRY_RUN "gpuscale.dev/dry-run"

// The table of the whole document: apiVersion, kind, metadata, spec. Its validate hooks check the rules between
// fields (min <= max, low < high, exactly one of target and watermarks, unique signal names, ...). Decode documents
// with policy_decode(), not with schema_decode(): the table alone leaves some fields as text.
extern const struct schema policy_schema;

// Decodes `node` into `ret_document`, which the caller has zeroed. Its strings and lists live in `a`; the node
// may be freed afterwards. Returns 0, or -1 with every fault appended to `errors`. A field that the table does not have
// is a fault.
int policy_decode(const struct doc_node *node, struct policy_document *ret_document, struct arena *a,
                  struct schema_errors *errors);

// As policy_decode(), but appends fields that the table does not have to `unknown` and does not fail because of them.
int policy_decode_tolerant(const struct doc_node *node, struct policy_document *ret_document, struct arena *a,
                           struct schema_errors *errors, struct schema_errors *unknown);

#endif
