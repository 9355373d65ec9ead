// SPDX-License-Identifier: Apache-2.0
// Selects one policy of a set, for commands and tests that need exactly one.
#ifndef GPUSCALE_POLICIES_LOAD_POLICY_PICK_H
#define GPUSCALE_POLICIES_LOAD_POLICY_PICK_H

struct err;
struct policy;
struct file_set;

// Returns the policy that `key` selects: "namespace/name", or a name that only one policy has; NULL or "" selects the
// only policy of the set. Returns NULL and *e (ERR_INPUT), which lists the policies or suggests a similar name.
const struct policy *policy_pick(const struct file_set *set, const char *key, struct err *e);

#endif
