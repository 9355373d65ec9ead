// SPDX-License-Identifier: Apache-2.0
// What the external metrics API says: the signals of the policies in force, and the replicas decided, as metrics. A
// name is
//   SIGNAL          the signal of that name of every policy of the namespace, told apart by labels
//   POLICY:SIGNAL   of one policy
//   @desired-replicas, POLICY:@desired-replicas   what the policy would have
// A value is given only while it may be gone by: read well, not older than the signal's staleAfter. If one of those
// asked for may not be, none is given: a sum that silently lost a part would scale the wrong way.
#ifndef GPUSCALE_CONTROLLER_EXTERNAL_VALUES_H
#define GPUSCALE_CONTROLLER_EXTERNAL_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct decision;
struct err;
struct policy;

#define EXTERNAL_VALUES_MAX      1000 // of one reply
#define EXTERNAL_NAMES_MAX       1000 // listed by discovery; there may be more
#define EXTERNAL_DESIRED         "@desired-replicas"
#define EXTERNAL_DECISION_AGE_MS 15000 // a decision is gone by for two intervals of its policy and this

// One policy in force, as the controller has it.
struct external_source {
	const struct policy *policy;
	const struct decision *decision; // the last one; NULL: none yet
	const char *error;               // why the last tick brought none; "" when it did
};
// The i-th policy, from 0 on; false past the last.
typedef bool external_source_fn(void *arg, size_t i, struct external_source *ret_source);

// Appends the ExternalMetricValueList of `metric` in the namespace, of the values whose labels (policy, signal,
// target_kind, target_name) the selector takes (NULL: all). wall_ms: now. -1 and *e: ERR_NOT_FOUND no policy of the
// namespace has it, ERR_INPUT the selector, ERR_LIMIT too many values, ERR_SERVER a value may not be gone by.
int external_values_write(struct buf *out, external_source_fn *next, void *arg, const char *namespace_name,
                          const char *metric, const char *selector, int64_t wall_ms, struct err *e);

// The names that discovery lists: each signal's once, and EXTERNAL_DESIRED. Names with a policy in front are served,
// but not listed: discovery is open to every user of the cluster. Returns how many; the texts belong to the policies.
size_t external_values_names(external_source_fn *next, void *arg, const char *ret_names[EXTERNAL_NAMES_MAX]);

#endif
