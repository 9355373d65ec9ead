// SPDX-License-Identifier: Apache-2.0
// Finds the age of the data of an instant query. The response does not contain it: Prometheus stamps the result with
// the evaluation time, and its five-minute lookback includes series that have ended. freshness_wrap requests both at
// once: the query, or'ed with one extra series whose value is the time of the newest sample.
#ifndef GPUSCALE_PROMQL_FRESHNESS_H
#define GPUSCALE_PROMQL_FRESHNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct promql_series;

#define FRESHNESS_LABEL         "__gpuscale_freshness__"
#define FRESHNESS_SELECTORS_MAX 32 // selectors whose age is checked; a query with more is not sent

struct freshness_span {
	const char *start;
	size_t len;
};

// Finds the vector selectors of a PromQL expression (name, {..} or both; without range, offset and @), in order, each
// text once, at most FRESHNESS_SELECTORS_MAX. Returns their number. *ret_beyond is the first selector above the limit;
// NULL: none. Purely lexical: accepts any text.
size_t freshness_selectors(const char *query, struct freshness_span *ret_spans, const char **ret_beyond);

// Returns how far back the ranges of a query reach, in ms: the sum of all ranges that can be parsed ([5m], [1h:1m]); 0
// without ranges. Purely lexical.
int64_t freshness_reach_ms(const char *query);

// Appends the query followed by "\nor <freshness>": the extra series is labelled FRESHNESS_LABEL, and its value is the
// time of the oldest of the selectors' newest samples, in seconds since the epoch. Selectors without a current sample
// are left out; when all are, the newest samples within the query's ranges count. The query keeps its positions, so a
// parse error still reports the right column.
// With FRESHNESS_NONE and FRESHNESS_TOO_LONG, nothing useful was appended. The rest of the data could then be of any
// age, so it must not be used.
enum freshness {
	FRESHNESS_WRAPPED,
	FRESHNESS_NONE,     // the query has no selector
	FRESHNESS_TOO_LONG, // more than FRESHNESS_SELECTORS_MAX selectors, or out is full
};
enum freshness freshness_wrap(struct buf *out, const char *query);

// Returns whether the series is the extra one; *ret_time_ms is then its time.
bool freshness_is_series(const struct promql_series *s, int64_t *ret_time_ms);

#endif
