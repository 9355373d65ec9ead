// SPDX-License-Identifier: Apache-2.0
// Warnings about policies that are valid and probably wrong: common mistakes with GPU metrics, and settings that
// contradict each other. Each warning names the place, the problem and the fix.
#ifndef GPUSCALE_POLICIES_LINT_LINT_H
#define GPUSCALE_POLICIES_LINT_LINT_H

#include <stdbool.h>
#include <stddef.h>

struct doc_node;
struct policy;
struct policy_document;
struct policy_signal;
struct promql_value;
struct scale_target;
struct schema_errors;

#define LINT_SCRAPE_MS 15000 // assumed scrape interval

// Checks one policy that was decoded without errors from `root`. `text` is the NUL-terminated content of its file; if
// it is NULL, places inside long queries are those of their first line. Adds to `notes` (may be NULL) what is right now
// and changes with a release that the user may not run yet.
void lint_policy(const struct policy *policy, const struct doc_node *root, const char *text,
                 struct schema_errors *warnings, struct schema_errors *notes);

// Reports a target that cannot exist on any API server: an unknown built-in kind, or a built-in kind with the wrong
// apiVersion.
void lint_target(const struct policy_document *document, const struct doc_node *root, struct schema_errors *errors);

// Warns about behavior.scaleDown.victims of a target whose pods are not removed by their deletion cost.
void lint_victims(const struct policy *policy, const struct scale_target *target, const struct doc_node *root,
                  struct schema_errors *warnings);

// Reports queries of the document that Prometheus refuses, or that never match a series, whether or not the document is
// a valid policy. kind_of returns the kind of the source of that name (enum promql_kind; NULL: the default source): of
// a query for VictoriaMetrics, which accepts more, only brackets and quotes are checked. Skips signals with bad[i], and
// sets it for each signal with an error (POLICY_SIGNALS_MAX elements). Adds to `warnings` what is odd in a query that
// works.
void lint_queries(const struct doc_node *root, const char *text, int (*kind_of)(void *arg, const char *source),
                  void *arg, struct schema_errors *errors, struct schema_errors *warnings, bool *bad);

// Returns element i of a list, NULL when the list is shorter.
const struct doc_node *lint_element(const struct doc_node *list, size_t i);
// Returns the nearest node that the file contains: `a`.`b` of `node`, else `a`, else `node` itself. a, b: may be NULL.
const struct doc_node *lint_nearest(const struct doc_node *node, const char *a, const char *b);

// ---- queries: shared with lint_query.c and the command `check` ----

struct lint_query {
	const char *namespace_name; // namespace of the policy
	const struct policy_signal *signal;
	const struct doc_node *node;            // node of the query
	const char *text;                       // text of the file, or NULL
	const char *path;                       // "spec.signals[0].query"
	struct schema_errors *warnings, *notes; // notes: may be NULL
	bool has_default;                       // a formula reads the signal as `name ?? default`
	bool is_noted;                          // the policy has a note about renames; read and set by lint_query_check
	// set by lint_query_check
	size_t n_metrics, n_busy; // metrics named, and those of them that only show that a GPU is busy
	double low, high;         // no value lies outside; -INFINITY and INFINITY: unknown
	bool has_wrong_unit;      // a warning about its unit was added
};
// Reads what is known of the values of a query. Returns false when it is not a valid query.
bool lint_query_value(const char *query, struct promql_value *ret_value);
// Checks one query.
void lint_query_check(struct lint_query *q);
// Adds a warning about query[offset..offset + len), placed in the file.
void lint_query_warn(const struct lint_query *q, size_t offset, size_t len, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
// Sets *ret_offset to the place in the file of offset in the scalar `node` as decoded. Returns false when it cannot be
// found.
bool lint_offset(const char *text, const struct doc_node *node, size_t offset, size_t *ret_offset);

#endif
