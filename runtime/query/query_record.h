// SPDX-License-Identifier: Apache-2.0
// Decides from the last answers of one query how to send it next: alone or combined with other queries, in a fast or a
// slow slot, at every tick or less often. Pure: no clock, no I/O.
//
// A query that fails alone is isolated: it is sent alone until it has succeeded QUERY_ALONE_TICKS times. The number
// doubles each time the query fails again after it was combined with others. After QUERY_FAILURES_MAX consecutive
// failures, the query is sent at growing intervals.
#ifndef GPUSCALE_RUNTIME_QUERY_QUERY_RECORD_H
#define GPUSCALE_RUNTIME_QUERY_QUERY_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#define QUERY_FAST_MS        250   // a query that takes longer alone is slow, and is always sent alone
#define QUERY_SLOW_TICKS     10    // consecutive fast answers after which a slow query is treated as fast again
#define QUERY_ALONE_TICKS    40    // answers alone before a failed query is combined with others again
#define QUERY_STRIKES_MAX    5     // limit on the doublings of QUERY_ALONE_TICKS
#define QUERY_FAILURES_MAX   3     // consecutive failures before the query is sent less often
#define QUERY_BACKOFF_MIN_MS 1000  // the first delay; doubled by each failure
#define QUERY_BACKOFF_MAX_MS 30000 // the longest delay, unless the server's Retry-After is longer

struct query_record { // zeroed: nothing known
	bool is_measured, is_fusable;
	uint8_t slow;          // ticks for which the query is still treated as slow
	uint8_t strikes;       // how often the query was isolated
	uint8_t failures;      // consecutive
	uint16_t alone;        // answers alone still required before the query is combined again
	uint16_t healthy;      // answers since then
	int64_t ask_after_ms;  // wall clock, as the ticks
	uint64_t source_epoch; // at the last failure
};

// Records the duration of the last request, whatever its outcome. is_alone: the request carried no other query.
void query_record_took(struct query_record *r, int64_t ms, bool is_alone);
// Records an answer. is_vector: the result type permits combining the query with others.
void query_record_answered(struct query_record *r, bool is_vector);
// Isolates a query whose answer would spoil a combined request: it has a warning or another result type.
void query_record_isolate(struct query_record *r);
// Records that the query failed alone at the tick of now_ms, and its source is up. retry_after_ms: the delay that the
// server requested, or 0. source_epoch: that of the source (struct promql_source).
void query_record_failed(struct query_record *r, int64_t now_ms, int64_t retry_after_ms, uint64_t source_epoch);
// Records that a combined request failed although each of its queries succeeds alone: together they are too large.
void query_record_set_apart(struct query_record *r);
// Call before the query is sent. Clears failures from before the source was last down.
void query_record_begin(struct query_record *r, uint64_t source_epoch);

bool query_record_may_fuse(const struct query_record *r);
bool query_record_is_slow(const struct query_record *r);
bool query_record_is_isolated(const struct query_record *r);
// Returns the time from now_ms until the query may be sent again, in ms; 0: now.
int64_t query_record_wait_ms(const struct query_record *r, int64_t now_ms);

#endif
