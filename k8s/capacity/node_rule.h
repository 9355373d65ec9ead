// SPDX-License-Identifier: Apache-2.0
// On which nodes a pod may run: its node selector, its required node affinity, and the taints that it tolerates.
// Kubernetes: component-helpers/scheduling/corev1, nodeaffinity and ToleratesTaint.
#ifndef GPUSCALE_K8S_CAPACITY_NODE_RULE_H
#define GPUSCALE_K8S_CAPACITY_NODE_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json/json_span.h"
#include "k8s/client/label_selector.h"

struct arena;
struct err;

#define NODE_RULE_TERMS_MAX        64 // terms of the affinity
#define NODE_RULE_REQUIREMENTS_MAX 64 // requirements in one term, or in the node selector
#define NODE_RULE_VALUES_MAX       256
#define NODE_RULE_TOLERATIONS_MAX  64
#define NODE_RULE_TEXTS_MAX        1024 // keys and values of one rule together
#define NODE_RULE_TEXT_BYTES       512  // length of a key or a value

enum taint_effect { TAINT_NO_SCHEDULE, TAINT_NO_EXECUTE, TAINT_PREFER_NO_SCHEDULE, TAINT_EFFECT__COUNT };
struct node_taint {
	const struct label *label; // key and value
	enum taint_effect effect;
};
// Reads the effect of a taint or a toleration; TAINT_EFFECT__COUNT: none, or unknown.
enum taint_effect taint_effect_read(struct json_span effect);

struct node_requirement;
struct node_term;
struct toleration;

struct node_rule { // in the arena of its shape
	struct node_requirement *selector;
	size_t n_selector;
	struct node_term *terms; // terms of the affinity: one must match
	size_t n_terms;
	bool has_affinity; // with no terms, no node matches
	struct toleration *tolerations;
	size_t n_tolerations;
	const char *node_name; // NULL: any
	size_t n_texts;        // keys and values, the measure of what it costs to compare the rule with a node
};

// Reads the rule of a PodSpec. Returns 0, or -1 and *e: ERR_INPUT names the field that is invalid, ERR_LIMIT.
int node_rule_read(struct arena *a, struct json_span spec, struct node_rule *ret_rule, struct err *e);
// Returns whether the node has the labels and the name that the rule requires. labels: of a label pool, sorted by
// label_pool_sort().
bool node_rule_matches(const struct node_rule *r, const char *node_name, const struct label *const *labels,
                       size_t n_labels);
// Returns whether the rule tolerates the taint, or the taint keeps no pod away.
bool node_rule_tolerates(const struct node_rule *r, const struct node_taint *taint);

#endif
