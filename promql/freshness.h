// SPDX-License-Identifier: Apache-2.0
// How old is the data behind an instant query? Prometheus stamps the result with the evaluation time, and its
// five-minute lookback keeps a dead series alive, so the answer itself does not tell. freshness_wrap() asks for both in
// one request: the query, or'ed with one extra series that carries the time of the newest sample behind it.
#ifndef GPUSCALE_PROMQL_FRESHNESS_H
#define GPUSCALE_PROMQL_FRESHNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct promql_series;

#define FRESHNESS_LABEL         "__gpuscale_freshness__"
#define FRESHNESS_SELECTORS_MAX 8

struct freshness_span {
	const char *start;
	size_t len;
};

// The vector selectors of a PromQL expression (name, {..} or both; without range, offset and @), at most
// FRESHNESS_SELECTORS_MAX, in order, each text once. Purely lexical: works on any text, finds nothing in nonsense.
size_t freshness_selectors(const char *query, struct freshness_span *ret_spans);

// How far back the ranges of a query reach, one inside the other: the sum of all that can be read ([5m], [1h:1m]); 0
// without any. Lexical, as above.
int64_t freshness_reach_ms(const char *query);

// Appends the query followed by "\nor <freshness>": the extra series is labelled FRESHNESS_LABEL and its value is, in
// seconds since the epoch, the newest sample of that selector whose newest sample is oldest. Selectors without a
// present sample are left out; when that is all of them, what the query's ranges still reach of them counts. The query
// keeps its positions, so a parse error still points at the right column. Returns false and appends nothing when the
// query has no selector.
bool freshness_wrap(struct buf *out, const char *query);

// True when the series is the extra one; *ret_time_ms is then the time it carries.
bool freshness_is_series(const struct promql_series *s, int64_t *ret_time_ms);

#endif
