// SPDX-License-Identifier: Apache-2.0
// The parts of the policy table, one file each (private to policies/).
#ifndef GPUSCALE_POLICIES_SCHEMA_POLICY_SCHEMA_PRIVATE_H
#define GPUSCALE_POLICIES_SCHEMA_POLICY_SCHEMA_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/schema/schema_rows.h"

#define SECOND_MS 1000.0
#define HOUR_MS   (3600 * SECOND_MS)
#define DAY_MS    (24 * HOUR_MS)

// The fields that an API server adds to metadata and to an object, as in the output of `kubectl get -o yaml`.
extern const char *const policy_schema_served_metadata[], *const policy_schema_served[];
extern const struct schema policy_schema_signal;
extern const struct schema policy_schema_fleet;     // spec.scaleTargets -> struct fleet_selection
extern const struct schema policy_schema_durations; // {up, down} -> struct policy_sustain
extern const struct schema policy_schema_gpus, policy_schema_variant;

struct arena;
struct doc_node;
struct policy;
struct policy_document;
struct schema_errors;

// Returns whether the API server accepts `s` as the name of an object (with dots) or of a namespace (without), RFC
// 1123.
bool policy_schema_is_dns_name(const char *s, bool dots);
// Returns the enum combine that the text of `combine` names; a text that is not a name is a formula.
int policy_schema_combine(const char *text);
// Sets `paused` and `dry_run` from the annotations and `label_lines` from the labels, then clears the pointers into the
// document.
void policy_schema_read_metadata(const struct doc_node *root, struct policy *policy, struct arena *a,
                                 struct schema_errors *errors);
// Checks that a policy with a fleet has no other target, and uses only what fleets support.
void policy_schema_check_fleet(const struct policy_document *d, struct fault_list *l);
// Writes the selector of the fleet and its target to *d.
void policy_schema_read_fleet(const struct doc_node *root, struct policy_document *d, struct arena *a,
                              struct schema_errors *errors);
// Checks the rules between spec.variants and the other fields.
void policy_schema_check_variants(const struct policy_document *d, struct fault_list *l);

#endif
