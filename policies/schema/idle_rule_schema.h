// SPDX-License-Identifier: Apache-2.0
// The one table of the fields of a GPUIdleRule. Decoder, defaults, ranges, `check`, the CRD and `explain` are generated
// from it.
#ifndef GPUSCALE_POLICIES_SCHEMA_IDLE_RULE_SCHEMA_H
#define GPUSCALE_POLICIES_SCHEMA_IDLE_RULE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct doc_node;
struct schema;
struct schema_errors;

#define IDLE_RULE_KIND           "GPUIdleRule"
#define IDLE_RULE_NAMESPACES_MAX 256

enum idle_action { IDLE_REPORT, IDLE_SCALE };

// Which workloads are treated as idle, and what is done about them.
struct idle_rule {
	int api_version, kind;
	const char *name;
	const struct doc_node *annotations, *labels; // NULL once decoded
	const char *source;                          // "": the default source
	const char **namespaces;
	size_t n_namespaces; // 0: every namespace
	int64_t after_ms, interval_ms, grace_ms;
	int action; // enum idle_action
	int32_t replicas, max_per_hour;
};

// Returns the table of the whole document: apiVersion, kind, metadata, spec.
const struct schema *idle_rule_schema(void);
// Decodes `node` into `rule`, which the caller has zeroed. Strings and lists of the rule live in `a`; the document may
// be freed afterwards. Returns 0, or -1 with every fault appended to `errors`.
int idle_rule_decode(const struct doc_node *node, struct idle_rule *rule, struct arena *a,
                     struct schema_errors *errors);
// As idle_rule_decode, for an object of an API server, whose metadata the caller reads: decodes only `spec` and leaves
// the name unset. Fields that this version does not know are reported to `unknown`.
int idle_rule_decode_spec(const struct doc_node *spec, struct idle_rule *rule, struct arena *a,
                          struct schema_errors *errors, struct schema_errors *unknown);
// Returns whether the rule looks at workloads of this namespace.
bool idle_rule_covers(const struct idle_rule *rule, const char *namespace_name);

#endif
