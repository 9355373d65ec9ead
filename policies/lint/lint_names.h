// SPDX-License-Identifier: Apache-2.0
// The names of metrics in queries, and the meaning of GPU metrics, as far as queries get it wrong.
#ifndef GPUSCALE_POLICIES_LINT_LINT_NAMES_H
#define GPUSCALE_POLICIES_LINT_LINT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
