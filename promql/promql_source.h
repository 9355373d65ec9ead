// SPDX-License-Identifier: Apache-2.0
// Sources: Prometheus-compatible servers by name. Each has its own connections and deadline, so that one that hangs
// delays nobody else, and its own health: one that is down is asked a single probe at a time, everything else is
// answered at once with why.
#ifndef GPUSCALE_PROMQL_PROMQL_SOURCE_H
#define GPUSCALE_PROMQL_PROMQL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/exposition.h"
#include "promql/promql.h"
#include "promql/promql_health.h"

struct event_base;
struct promql_source;
struct promql_sources;

#define PROMQL_SOURCES_MAX       64
#define PROMQL_SOURCE_NAME_MAX   63
#define PROMQL_SOURCE_DEFAULT    "default" // what a signal that names none asks
#define PROMQL_CONCURRENCY       16
#define PROMQL_CONCURRENCY_MAX   256
#define PROMQL_PROBE_INTERVAL_MS 1000 // between two probes of a source that is down, at least

struct promql_source_options {
	const char *name;            // letters, digits, '_', '-' and '.'
	struct promql_options query; // .http and .clock are filled in
	const char *tenant;          // of Mimir and Thanos: sent as X-Scope-OrgID; NULL: none
	int max_in_flight;           // queries under way at once; 0: PROMQL_CONCURRENCY
	bool never_fuse;             // one query a request, always
};

struct promql_source_stats {
	uint64_t queries;                    // requests sent, probes and refills included
	uint64_t failed[ERR__COUNT];         // of these, by kind of error
	uint64_t partial;                    // of these answered, but with warnings
	uint64_t refused;                    // not sent: the source is down
	int64_t last_answer_wall_ms;         // 0: never
	double last_seconds;                 // of the last one that ended
	struct exposition_histogram seconds; // from question to answer or error
};

// Opens all. NULL and *e as promql_new, or ERR_INPUT, ERR_LIMIT for names and numbers, naming the source.
struct promql_sources *promql_sources_new(struct event_base *loop, const struct clock *clock,
                                          const struct promql_source_options *list, size_t n, struct err *e);
// Ends every query under way with ERR_CANCELED; no more are taken. The sources stay for their names and numbers.
void promql_sources_cancel(struct promql_sources *s);
// Cancels if need be, then frees. NULL is fine.
void promql_sources_free(struct promql_sources *s);
size_t promql_sources_count(const struct promql_sources *s);
struct promql_source *promql_sources_at(const struct promql_sources *s, size_t i); // in the order given
// The source called `name`; NULL or "": the one called "default", or the only one there is. NULL and *e
// (ERR_NOT_FOUND) with the nearest name.
struct promql_source *promql_sources_find(const struct promql_sources *s, const char *name, struct err *e);

// By which its time is told.
const struct clock *promql_source_clock(const struct promql_source *s);
const char *promql_source_name(const struct promql_source *s);
const char *promql_source_url(const struct promql_source *s);
const struct promql_health *promql_source_health(const struct promql_source *s);
const struct promql_source_stats *promql_source_stats(const struct promql_source *s);
const char *promql_source_error(const struct promql_source *s); // the last failure since it was up; "" when it is
enum promql_kind promql_source_kind(const struct promql_source *s, const char **ret_version);
// How long the text of a request may be that asks several queries at once (promql/fuse.h); 0: it may not.
size_t promql_source_fuse_bytes(const struct promql_source *s);
struct event_base *promql_sources_loop(const struct promql_sources *s);
// For a question whose outcome is not to count (`check`).
struct promql *promql_source_client(const struct promql_source *s);

// As promql_ask and promql_query_range. While the source is down: -1 and *e (ERR_UNREACHABLE) with the reason, unless
// an instant query may be the probe.
int promql_source_ask(struct promql_source *s, const struct promql_question *question, promql_done_fn *done, void *arg,
                      struct err *e);
int promql_source_ask_range(struct promql_source *s, const char *query, int64_t start_ms, int64_t end_ms,
                            int64_t step_ms, promql_done_fn *done, void *arg, struct err *e);

#endif
