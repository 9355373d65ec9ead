// SPDX-License-Identifier: Apache-2.0
// Reads the time zones of a policy's schedules from the time zone database of the machine, because the engine cannot.
#ifndef GPUSCALE_POLICIES_LOAD_POLICY_ZONES_H
#define GPUSCALE_POLICIES_LOAD_POLICY_ZONES_H

struct arena;
struct doc_node;
struct policy;
struct schema_errors;

// Sets the time zone table of every schedule of `policy`; the tables live in `a`. `root` is the document of the policy.
// Reports an unknown zone at its place, with a similar name. Returns 0, or -1 when a zone was reported. May be called
// for a policy with other errors, to check its zones.
int policy_zones_load(struct policy *policy, const struct doc_node *root, struct arena *a,
                      struct schema_errors *errors);

#endif
