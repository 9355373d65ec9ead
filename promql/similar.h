// SPDX-License-Identifier: Apache-2.0
// Combines several instant queries into one request, to pay for connection, headers, parsing and system calls once.
//
// Any queries (fuse_*): each result is marked with the number of its query, and the queries are or'ed; the marks
// identify the results. Queries that differ only in the values of `=` matchers (similar_*): one query for all their
// series: load{pod="a"} and load{pod="b"} become load{pod=~"a|b"}, and sum(..) becomes sum by (pod) (..). This costs a
// server a fraction of what separate or fused queries cost. Covers one selector, in at most one function that keeps its
// labels and one aggregation; other queries are not combined.
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

#define FUSE_LABEL "__gpuscale_query__"
#define FUSE_MAX   16

// The maximum number of bytes that fuse_add adds to a query.
#define FUSE_BYTES_EACH 80

// Appends query number i (0, 1, ..; below FUSE_MAX). Only for queries that the server has responded to
// separately with a vector: a text that is not a complete expression would merge with its neighbours. A query may end
// in a comment.
void fuse_add(struct buf *out, const char *query, int i);
// Returns the number of the query to which a series of the response belongs; -1 when it has no mark.
int fuse_index(const struct promql_series *s);

#endif
