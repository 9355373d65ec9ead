// SPDX-License-Identifier: Apache-2.0
// The time zones of a policy's schedules: read from the machine's database when the policy is, since the engine reads
// nothing.
#ifndef GPUSCALE_CONTROLLER_POLICY_ZONES_H
#define GPUSCALE_CONTROLLER_POLICY_ZONES_H

struct arena;
struct doc_node;
struct policy;
struct schema_errors;

// Puts the table of every schedule's time zone into `policy` (tables in `a`); `root` is the document it was decoded
// from. An unknown zone is reported at its place, with the name that may have been meant. 0, or -1 when one was
// reported. Call it also for a policy that has other errors: then only the zones are checked.
int policy_zones_load(struct policy *policy, const struct doc_node *root, struct arena *a,
                      struct schema_errors *errors);

#endif
