// SPDX-License-Identifier: Apache-2.0
// Requests the present value of a query, without the age of its data, which is enough to notice that the value has
// moved. Queries that differ only in label values (promql/similar.h) are sent as one: for the server, the queries of 64
// policies cost about as much as one query. A part of the query hub; use query_hub_check_early().
#ifndef GPUSCALE_RUNTIME_QUERY_EARLY_QUERY_H
#define GPUSCALE_RUNTIME_QUERY_EARLY_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct promql_source;
struct query_peeks;

#define QUERY_PEEKS_TOGETHER 64   // queries in one request: as many as a full slot has policies
#define EARLY_QUERY_MS       2000 // the longest that a request may be queued, and the longest that it may take

enum early_query_outcome {
	EARLY_QUERY_ANSWERED,
	EARLY_QUERY_FAILED, // by the source; later questions may succeed
	EARLY_QUERY_UNFIT,  // the combined query was refused, or its answer cannot be used: send the query alone
	EARLY_QUERY_OUTCOME__COUNT
};
// n_series: of this query; value: of the first series, for EARLY_QUERY_ANSWERED with n_series > 0.
typedef void early_query_fn(void *arg, enum early_query_outcome outcome, size_t n_series, double value);

// flush: an event of the caller that calls query_peeks_flush() at the next turn of the loop; not owned. Returns NULL
// when memory is exhausted.
struct query_peeks *query_peeks_new(struct event *flush);
// Every question must have been answered.
void query_peeks_free(struct query_peeks *peeks);
// Returns false when the query cannot be combined with others; then fn is not called. Copies the query.
bool query_peeks_ask(struct query_peeks *peeks, struct promql_source *source, const char *query, int64_t now_ms,
                     early_query_fn *fn, void *arg);
// Sends the queued queries now.
void query_peeks_flush(struct query_peeks *peeks);

#endif
