// SPDX-License-Identifier: Apache-2.0
// Confines a PromQL query to the series of one tenant, or to those that an operator trusts: adds label matchers to
// every vector selector, so that the query cannot read other series, on any server. Refuses queries that cannot be
// rewritten safely: MetricsQL extensions, functions that are missing from the table in promql/functions.c, metrics
// whose name is a keyword.
#ifndef GPUSCALE_PROMQL_CONFINE_H
#define GPUSCALE_PROMQL_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

#define CONFINE_DEPTH_MAX 64 // nested parentheses, as PROMQL_DEPTH_MAX

// Returns whether the label can be enforced: letters, digits and '_', no digit first, not __name__.
bool confine_label_is_valid(const char *label);

// Appends the confined query to `out`, without comments. `value` is a namespace: letters, digits, '-' and '.'. A
// selector that already has LABEL="VALUE" is copied unchanged. Returns 0, or -1 and *e, which starts with "line:column"
// of the query:
//   ERR_INPUT: the query has another matcher on the label, or cannot be parsed;
//   ERR_LIMIT: the query is nested deeper than CONFINE_DEPTH_MAX, or the result exceeds the limit of `out`.
// On error, *ret_offset (may be NULL) is the position in the query, and `out` must not be used.
int confine_query(struct buf *out, const char *query, const char *label, const char *value, size_t *ret_offset,
                  struct err *e);

// Appends the query with `matchers` (of confine_check_matchers()) added to every selector to `out`, without comments.
// Returns 0, or -1 and *e as confine_query(): ERR_INPUT when the query cannot be parsed, ERR_LIMIT.
int confine_add_matchers(struct buf *out, const char *query, const char *matchers, struct err *e);
// Appends label matchers such as `job="a",instance=~"b.*"` to `out`, without spaces or comments. Returns 0, or -1 and
// *e, which starts with "line:column": ERR_INPUT for an empty text, a matcher on __name__ or anything else that is not
// a list of matchers; ERR_LIMIT when the result exceeds the limit of `out`.
int confine_check_matchers(struct buf *out, const char *matchers, struct err *e);

#endif
