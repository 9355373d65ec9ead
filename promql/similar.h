// SPDX-License-Identifier: Apache-2.0
// Combines instant queries that differ only in the values of `=` matchers into one query for all their series:
// load{pod="a"} and load{pod="b"} become load{pod=~"a|b"}, and sum(..) becomes sum by (pod) (..). This costs a server a
// fraction of what separate queries cost, or queries that promql/fuse.h combines. Covers one selector, in at most one
// function that keeps its labels and one aggregation; other queries are not combined.
#ifndef GPUSCALE_PROMQL_SIMILAR_H
#define GPUSCALE_PROMQL_SIMILAR_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct promql_series;

#define SIMILAR_LABELS_MAX     4  // `=` matchers of a query
#define SIMILAR_NAME_BYTES_MAX 64 // name of a label, with the terminator

struct similar_span {
	size_t at, len; // in the query
};
struct similar_query {
	size_t n;                                        // `=` matchers
	struct similar_span matcher[SIMILAR_LABELS_MAX]; // name="value"
	struct similar_span value[SIMILAR_LABELS_MAX];   // without its quotes
	char name[SIMILAR_LABELS_MAX][SIMILAR_NAME_BYTES_MAX];
	size_t by_at; // behind the name of the aggregation; 0: none
};

// Returns whether the query can be combined with others. *ret_parsed is then valid with this text.
bool similar_parse(const char *query, struct similar_query *ret_parsed);
// Appends the query without the values. Only queries with equal shapes can be combined.
void similar_put_shape(struct buf *out, const char *query, const struct similar_query *parsed);
// Appends the query for the series of all n >= 1 queries of one shape. It may return other series as well.
void similar_put_all(struct buf *out, const char *const *queries, const struct similar_query *parsed, size_t n);
// Returns whether a series of the response to that query belongs to the response to `query`.
bool similar_matches(const struct promql_series *s, const char *query, const struct similar_query *parsed);

#endif
