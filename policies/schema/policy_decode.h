// SPDX-License-Identifier: Apache-2.0
// Decodes one GPUAutoscaler document into its rules and its target: the schema table, then every field that needs more
// than one other field to be understood.
#ifndef GPUSCALE_POLICIES_SCHEMA_POLICY_DECODE_H
#define GPUSCALE_POLICIES_SCHEMA_POLICY_DECODE_H

struct arena;
struct doc_node;
struct policy_document;
struct schema_errors;

// Decodes `node` into `ret_document`, which the caller has zeroed. Its strings and lists live in `a`; the node
// may be freed afterwards. Returns 0, or -1 with every fault appended to `errors`. A field that the table does not have
// is a fault.
int policy_decode(const struct doc_node *node, struct policy_document *ret_document, struct arena *a,
                  struct schema_errors *errors);

// As policy_decode(), but appends fields that the table does not have to `unknown` and does not fail because of them.
int policy_decode_tolerant(const struct doc_node *node, struct policy_document *ret_document, struct arena *a,
                           struct schema_errors *errors, struct schema_errors *unknown);

#endif
