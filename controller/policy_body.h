// SPDX-License-Identifier: Apache-2.0
// One policy as it was read, together with the memory it lives in: never changed, shared by whoever still needs it.
#ifndef GPUSCALE_CONTROLLER_POLICY_BODY_H
#define GPUSCALE_CONTROLLER_POLICY_BODY_H

#include <stdint.h>

#include "base/arena.h"
#include "policies/policy.h"

struct doc_node;

#define POLICY_BODY_ARENA_MAX (8 * 1024 * 1024)

struct policy_body {
	int refs;
	uint64_t fingerprint; // of what it was read from: equal ones say the same
	int64_t generation;   // of the object when it last said this; 0: from a file
	struct arena arena;   // what `policy` points into
	struct policy policy;
};

// An empty one with one reference; NULL when memory ends.
struct policy_body *policy_body_new(void);
struct policy_body *policy_body_ref(struct policy_body *b);
void policy_body_unref(struct policy_body *b); // NULL is fine
// The body around a policy that policy_body_new() made room for.
struct policy_body *policy_body_of(const struct policy *policy);

// Of a tree: kinds, keys and texts, not positions. `seed` joins several: 0, or what another call gave. node may be
// NULL. Good enough to notice a change, not meant against an adversary.
uint64_t policy_fingerprint(const struct doc_node *node, uint64_t seed);

#endif
