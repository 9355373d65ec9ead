// SPDX-License-Identifier: Apache-2.0
// Which policy of a set is meant, when a command or a test needs exactly one.
#ifndef GPUSCALE_CONTROLLER_POLICY_PICK_H
#define GPUSCALE_CONTROLLER_POLICY_PICK_H

struct err;
struct policy;
struct policy_set;

// key: "namespace/name", or a name that only one policy has; NULL or "": the only policy of the set.
// NULL and *e (ERR_INPUT) that lists what there is, or names the closest.
const struct policy *policy_pick(const struct policy_set *set, const char *key, struct err *e);

#endif
