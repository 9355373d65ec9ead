// SPDX-License-Identifier: Apache-2.0
// A policy is rules only; a binding applies it to an object that is scaled. One version of a policy may have several
// bindings. A fleet has one, which stands for all of its targets.
#ifndef GPUSCALE_POLICIES_SCHEMA_BINDING_H
#define GPUSCALE_POLICIES_SCHEMA_BINDING_H

#include <stdbool.h>
#include <stddef.h>

#include "policies/engine/policy.h"

// An object with a scale subresource, in the namespace of its policy.
struct scale_target {
	const char *api_version, *kind, *name;
};

struct binding { // owns nothing
	const struct policy *policy;
	const struct scale_target *target;
	const char *key; // "KIND/NAME" of the target; NULL: the only binding, of spec.scaleTargetRef
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
	struct scale_target target; // spec.scaleTargetRef; of a fleet: its kind, and FLEET_TARGET_NAME
	struct fleet_selection fleet;
};

// Returns whether both are the same object of one namespace.
bool scale_target_equals(const struct scale_target *a, const struct scale_target *b);
// Orders the keys of bindings of one policy, as strcmp() does. NULL comes first.
int binding_key_compare(const char *a, const char *b);
// Writes "NAME", or "NAME/KIND/TARGET" for one of several bindings, to out, which has `size` bytes; cuts what does not
// fit. `name` is the name of the policy, with or without its namespace. Returns the length that it needs.
size_t binding_format(char *out, size_t size, const char *name, const char *key);

#endif
