// SPDX-License-Identifier: Apache-2.0
// Several instant queries in one request: each result is marked with the number of its query and they are or'ed, so
// that the marks alone tell them apart. What a request costs (connection, headers, parsing, system calls) is paid once.
#ifndef GPUSCALE_PROMQL_FUSE_H
#define GPUSCALE_PROMQL_FUSE_H

#include <stddef.h>

struct buf;
struct promql_series;

#define FUSE_LABEL "__gpuscale_query__"
#define FUSE_MAX   16

// Bytes that fuse_add puts around a query, at most.
#define FUSE_BYTES_EACH 80

// Appends query number i (0, 1, ..; below FUSE_MAX). Only for queries that the server has taken by themselves and
// answered with a vector: whatever is not a whole expression would become part of its neighbours. A query may end in a
// comment.
void fuse_add(struct buf *out, const char *query, int i);
// The number of the query that a series of the answer belongs to; -1 when it has no mark.
int fuse_index(const struct promql_series *s);

#endif
