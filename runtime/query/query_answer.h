// SPDX-License-Identifier: Apache-2.0
// The result of a query, in the core's terms, and the memory that answers may take together.
#ifndef GPUSCALE_RUNTIME_QUERY_QUERY_ANSWER_H
#define GPUSCALE_RUNTIME_QUERY_QUERY_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "policies/engine/observation.h"

struct promql_result;

#define QUERY_DETAIL_BYTES 256
// Memory for the answers that policies keep until they have decided. Answers up to QUERY_ANSWER_SMALL_BYTES are not
// counted; answers above QUERY_ANSWER_LARGE_BYTES may use half of it. docs/evidence/performance.md has the total.
#define QUERY_ANSWERS_BYTES_MAX  ((size_t)16 * 1024 * 1024)
#define QUERY_ANSWER_SMALL_BYTES ((size_t)8 * 1024)
#define QUERY_ANSWER_LARGE_BYTES ((size_t)64 * 1024)

// Counts the memory of answers, which may outlive the hub.
struct query_memory;

// Shared: take a reference to keep it.
struct query_answer {
	int refs;
	enum obs_state state;
	const char *detail;          // the error, for people; "" without one
	size_t n_series;             // for OBS_TOO_MANY: the limit that was exceeded; series is then NULL
	struct obs_series *series;   // sample times are those of the newest data behind the query (promql/freshness.h);
	                             // the arrays and texts follow in the same allocation
	struct query_memory *memory; // the budget that counts this answer; NULL: too small to be counted
	size_t bytes;
	int64_t skew_ms; // skew of the server that answered, as promql_source_unexplained_skew_ms
};

struct query_memory *query_memory_new(void); // ends the process without memory
// Frees it once the last of its answers is freed.
void query_memory_abandon(struct query_memory *m);

// Creates an answer without data. The caller holds the only reference, here and below.
struct query_answer *query_answer_failed(enum obs_state state, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
// The answer had more than max_series series.
struct query_answer *query_answer_too_many(size_t max_series);
// Converts the part of the result that belongs to query `index`, with at most max_series series. of: the query of each
// series; NULL: all are its own. recovered: the name of a source that has just recovered, whose answers without series
// and without the age of any data are failures; NULL: it has not. When `m` is full, returns a failed answer instead.
struct query_answer *query_answer_of(const struct promql_result *r, const int8_t *of, int index, size_t max_series,
                                     const char *recovered, struct query_memory *m);
struct query_answer *query_answer_ref(struct query_answer *a);
void query_answer_unref(struct query_answer *a); // NULL is fine

#endif
