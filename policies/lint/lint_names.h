// SPDX-License-Identifier: Apache-2.0
// The names of metrics in queries, the meaning of GPU metrics, as far as queries get it wrong, and renamed metrics.
#ifndef GPUSCALE_POLICIES_LINT_LINT_NAMES_H
#define GPUSCALE_POLICIES_LINT_LINT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct dcgm_name;
struct doc_node;
struct policy;

enum lint_kind {
	LINT_GAUGE,   // any other unit
	LINT_DEGREES, // gauge, celsius
	LINT_WATTS,   // gauge
	LINT_PERCENT, // gauge, 0 - 100
	LINT_RATIO,   // gauge, 0 - 1
	LINT_RATE,    // a gauge that is already a rate, despite its name
	LINT_CODE,    // a gauge with the last code
	LINT_COUNTER, // only grows
	LINT_KIND__COUNT
};

// Returns the kind of a metric, under its name in any release of dcgm-exporter; LINT_KIND__COUNT for a name that is not
// in the table.
enum lint_kind lint_name_kind(const char *name);
// Returns whether a DCGM_FI_* name exists in no version; *ret_meant is a similar name, or NULL.
bool lint_name_is_unknown(const char *name, const char **ret_meant);

// Returns whether the name ends in `end`, with something before it.
bool lint_name_ends_in(const char *name, const char *end);

// Reads the names of metrics in a query, wherever PromQL permits one: before the braces of a selector, as its first
// string ({"x"}), and in matchers of the label __name__. Set `next` to the NUL-terminated query, and zero the other
// members.
struct lint_metric_names {
	const char *next;
	const char *rest, *end; // alternatives of a regular expression that were not returned yet
	bool in_braces, is_start, is_name_label, is_equal, is_regex;
};

// Writes the next name, as bytes of the query, to *ret_name and *ret_len. Functions and keywords are treated as names.
// A regular expression is read only as an alternation of names ("a|b"); matchers that exclude names are skipped.
// Returns false at the end.
bool lint_metric_names_next(struct lint_metric_names *r, const char **ret_name, size_t *ret_len);

// ---- metrics of inference engines, routers and GPU exporters that were renamed or removed ----

struct lint_rename {
	const char *old_name;
	const char *new_name; // a name if has_same_meaning, else what to use instead, in words
	const char *release;  // the first without the old name, or that has the new one
	bool has_same_meaning;
	bool is_equivalent; // another program's name of the metric; release is the program
};

// One row per name; the last row has no names.
extern const struct lint_rename lint_renames[];

// Returns the row of the metric name[0..len), with or without the suffix of a histogram or a counter (_bucket, _total);
// *ret_suffix_len is the length of that suffix. Returns NULL, and the length 0, when the name is not in the table.
const struct lint_rename *lint_rename_find(const char *name, size_t len, size_t *ret_suffix_len);
// Returns the row that a query should follow: as lint_rename_find(), but NULL when the query also names the new metric,
// as in "new or old". `query` is NUL-terminated.
const struct lint_rename *lint_rename_wanted(const char *query, const char *name, size_t len, size_t *ret_suffix_len);
// Returns the row of the metric name[0..len) if dcgm-exporter 4.9 renames it and the query does not name the new
// metric; else NULL. The old name is not gone: dcgm-exporter up to 4.8 has it, and gpuscale-exporter unless asked for
// the new names.
const struct dcgm_name *lint_rename_of_4_9(const char *query, const char *name, size_t len);

// One replacement in the text of a file: the bytes [offset, offset + len) become new_name.
struct lint_edit {
	size_t offset, len;
	const char *new_name;
};
// Collects the replacements in the queries of one policy that was decoded from `root`, of names whose meaning is the
// same. `text` is the NUL-terminated content of the file. Writes at most `max` edits, in any order, and returns their
// number.
size_t lint_rename_edits(const struct policy *policy, const struct doc_node *root, const char *text,
                         struct lint_edit *ret_edits, size_t max);

#endif
