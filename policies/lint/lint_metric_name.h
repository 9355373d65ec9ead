// SPDX-License-Identifier: Apache-2.0
// Reads the names of metrics in a query, wherever PromQL permits one: before the braces of a selector, as its first
// string ({"x"}), and in matchers of the label __name__.
#ifndef GPUSCALE_POLICIES_LINT_LINT_METRIC_NAME_H
#define GPUSCALE_POLICIES_LINT_LINT_METRIC_NAME_H

#include <stdbool.h>
#include <stddef.h>

// Set `next` to the NUL-terminated query, and zero the other members.
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
