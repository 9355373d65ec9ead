// SPDX-License-Identifier: Apache-2.0
// Decodes one GPUAutoscaler document into a struct policy: the schema table, then every field that needs more than one
// other field to be understood.
#ifndef GPUSCALE_POLICIES_SCHEMA_POLICY_DECODE_H
#define GPUSCALE_POLICIES_SCHEMA_POLICY_DECODE_H

struct arena;
struct doc_node;
struct policy;
struct schema_errors;

// Decodes `node` into `policy`, which the caller has zeroed. Strings and lists of the policy live in `a`; the document
// may be freed afterwards. Returns 0, or -1 with every fault appended to `errors`. A field that the table does not have
// is a fault.
int policy_decode(const struct doc_node *node, struct policy *policy, struct arena *a, struct schema_errors *errors);

// As policy_decode(), but appends fields that the table does not have to `unknown` and does not fail because of them.
int policy_decode_tolerant(const struct doc_node *node, struct policy *policy, struct arena *a,
                           struct schema_errors *errors, struct schema_errors *unknown);

#endif
