// SPDX-License-Identifier: Apache-2.0
// Combines several instant queries into one request, to pay for connection, headers, parsing and system calls once.
// Each result is marked with the number of its query, and the queries are or'ed; the marks identify the results.
#ifndef GPUSCALE_PROMQL_FUSE_H
#define GPUSCALE_PROMQL_FUSE_H

struct buf;
struct promql_series;

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
