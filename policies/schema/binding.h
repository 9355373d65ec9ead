// SPDX-License-Identifier: Apache-2.0
// A policy is rules only; a binding applies it to an object that is scaled. One version of a policy may have several
// bindings. A fleet has one, which stands for all of its targets.
#ifndef GPUSCALE_POLICIES_SCHEMA_BINDING_H
#define GPUSCALE_POLICIES_SCHEMA_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "policies/engine/policy.h"

// An object in the namespace of its policy. `path`: where it has its replicas (base/json/json_path.h); NULL: where its
// kind has them.
struct scale_target {
	const char *api_version, *kind, *name, *path;
};

#define VARIANTS_MAX         16
#define VARIANT_CAPACITY_MAX 1e6 // units that one replica serves
#define VARIANT_PRICE_MAX    1e6 // of one replica and hour

// One of several targets that share a decision: they serve the same requests on different GPUs.
struct scale_variant {
	const char *name;
	struct scale_target target;
	double capacity; // units of the decision that one replica serves; above 0
	bool price_set;
	double price_per_hour; // of one replica; else that of its GPUs in the price book
	struct policy_gpus gpus;
	int32_t min_replicas, max_replicas;
	int64_t startup_ms; // 0: the time that the policy has learnt
};

// spec.variants. n == 0: the policy scales spec.scaleTargetRef.
struct scale_variants {
	const struct scale_variant *items; // at most VARIANTS_MAX
	size_t n;
	double switch_cost; // of starting one replica, in the currency of the prices
};

struct binding { // owns nothing
	const struct policy *policy;
	const struct scale_target *target; // the first one of variants
	const char *key; // "KIND/NAME" of the target; NULL: the only binding, of spec.scaleTargetRef or spec.variants
	const struct scale_variants *variants; // NULL: the target is the only one
};

#define FLEET_REQUIREMENTS_MAX   16
#define FLEET_SELECTOR_BYTES_MAX 4096
#define FLEET_TARGET_NAME        "*" // name of the target of a fleet; no object has it

// One of matchExpressions.
struct fleet_requirement {
	const char *key;
	int op; // enum fleet_operator
	const char *const *values;
	size_t n_values;
};
enum fleet_operator { FLEET_IN, FLEET_NOT_IN, FLEET_EXISTS, FLEET_DOES_NOT_EXIST, FLEET_OPERATOR__COUNT };

// A label selector.
struct fleet_labels {
	const char *text; // as label_selector_parse() reads it; "": everything. Set by policy_decode()
	const struct doc_node *match_labels; // -> text; NULL after decoding
	const struct fleet_requirement *requirements;
	size_t n_requirements;
};

// The objects that one policy scales, each by its own series (spec.scaleTargets).
struct fleet_selection {
	bool set;
	const char *api_version, *kind;
	const char *label; // label of the series that has the name of the target
	struct fleet_labels selector;
	bool spans; // objects of the namespaces with these labels; else of the namespace of the policy
	struct fleet_labels namespaces;
};

// A GPUAutoscaler document: its rules and the target that it names. The policy comes first, so that the rows of the
// schema table name the fields of struct policy.
struct policy_document {
	struct policy policy;
	struct scale_target target; // spec.scaleTargetRef, or the first one of spec.variants; of a fleet: its kind, and
	                            // FLEET_TARGET_NAME
	struct scale_variants variants;
	struct fleet_selection fleet;
};

// Returns how many objects the binding scales: 1, or one per variant.
static inline size_t binding_targets(const struct binding *b)
{
	return b->variants ? b->variants->n : 1;
}
// Returns the target at `index`, below binding_targets().
static inline const struct scale_target *binding_target(const struct binding *b, size_t index)
{
	return b->variants ? &b->variants->items[index].target : b->target;
}
// Returns whether both are the same number of replicas of one namespace.
static inline bool scale_target_equals(const struct scale_target *a, const struct scale_target *b)
{
	return strcmp(a->api_version, b->api_version) == 0 && strcmp(a->kind, b->kind) == 0 &&
	       strcmp(a->name, b->name) == 0 && strcmp(a->path ? a->path : "", b->path ? b->path : "") == 0;
}
// Returns whether both scale the same objects, in the same order.
static inline bool binding_has_same_targets(const struct binding *a, const struct binding *b)
{
	size_t n = binding_targets(a);
	bool is_same = n == binding_targets(b);
	for (size_t i = 0; is_same && i < n; i++)
		is_same = scale_target_equals(binding_target(a, i), binding_target(b, i));
	return is_same;
}
// Orders the keys of bindings of one policy, as strcmp() does. NULL comes first.
static inline int binding_key_compare(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}
// Writes "NAME", or "NAME/KIND/TARGET" for one of several bindings, to out, which has `size` bytes; cuts what does not
// fit. `name` is the name of the policy, with or without its namespace. Returns the length that it needs.
static inline size_t binding_format(char *out, size_t size, const char *name, const char *key)
{
	return (size_t)snprintf(out, size, "%s%s%s", name, key ? "/" : "", key ? key : "");
}

#endif
