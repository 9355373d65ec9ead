// SPDX-License-Identifier: Apache-2.0
// A decoded policy with the memory that it uses: immutable, shared by reference counting.
#ifndef GPUSCALE_POLICIES_LOAD_POLICY_REF_H
#define GPUSCALE_POLICIES_LOAD_POLICY_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"

struct doc_node;
struct schema_errors;

#define POLICY_BODY_ARENA_MAX (8 * 1024 * 1024)

// Facts of the ScaledObject from which a policy was converted, which its status repeats. The texts live in the arena.
struct policy_origin {
	const char *target_kind;                      // "apps/v1.Deployment"
	const char *trigger_types;                    // "prometheus,cron"
	const char *metric_names[POLICY_SIGNALS_MAX]; // KEDA's names, by signal; NULL: none
	bool is_paused;                               // an annotation keeps the target at a number of replicas
};

struct policy_ref {
	int refs;
	uint64_t fingerprint;               // fingerprint of the document; policies with equal fingerprints are equal
	int64_t generation;                 // metadata.generation of the object; 0: from a file
	const struct policy_origin *origin; // NULL: the policy is not from a ScaledObject
	const char *objective_record, *startup_seconds; // texts of a status in the file; NULL or "": none
	struct arena arena;                             // the memory that `policy` and `target` point into
	struct policy policy;
	struct scale_target target;     // target in the document
	struct fleet_selection fleet;   // likewise; not set: the policy scales `target` alone
	struct scale_variants variants; // likewise
	struct binding binding;         // binding of `policy` and `target`
	// The bindings of this version, sorted by key: `binding`, or several with keys, which `arena` owns.
	const struct binding *bindings;
	size_t n_bindings;
};

// Returns an empty policy with one reference; NULL when memory is exhausted.
struct policy_ref *policy_ref_new(void);
struct policy_ref *policy_ref_acquire(struct policy_ref *b);
void policy_ref_release(struct policy_ref *b); // b may be NULL
// Takes over what was decoded, with the arena of b.
void policy_ref_set(struct policy_ref *b, const struct policy_document *document);
// Returns the binding with that key; NULL: this version has none.
const struct binding *policy_ref_binding(const struct policy_ref *b, const char *key);
// Returns the policy_ref that contains `policy`.
struct policy_ref *policy_ref_of(const struct policy *policy);

// Returns a fingerprint of the kinds, keys and texts of a tree, without positions. `seed` is 0, or the result of
// another call to combine both. `node` may be NULL. Detects changes; gives no protection against an adversary.
uint64_t policy_fingerprint(const struct doc_node *node, uint64_t seed);

// Sets the time zone table of every schedule of `policy`, which the engine cannot read, from the database of the
// machine; the tables live in `a`. `root` is the document of the policy. Reports an unknown zone at its place, with a
// similar name. Returns 0, or -1 when a zone was reported. May be called for a policy with other errors, to check its
// zones.
int policy_zones_load(struct policy *policy, const struct doc_node *root, struct arena *a,
                      struct schema_errors *errors);

#endif
