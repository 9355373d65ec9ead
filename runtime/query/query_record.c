// SPDX-License-Identifier: Apache-2.0
#include "runtime/query/query_record.h"

#include "promql/promql_source.h"

void query_record_took(struct query_record *r, int64_t ms, bool is_alone)
{
	bool is_slow = ms >= QUERY_FAST_MS;
	if (is_slow && !is_alone)
		return; // the query at fault is unknown
	r->is_measured = true;
	if (is_slow)
		r->slow = QUERY_SLOW_TICKS;
	else if (r->slow)
		r->slow--;
}

static uint16_t ticks_alone(const struct query_record *r)
{
	return (uint16_t)(QUERY_ALONE_TICKS << (r->strikes - 1));
}

void query_record_answered(struct query_record *r, bool is_vector)
{
	r->is_fusable = is_vector;
	r->failures = 0;
	r->ask_after_ms = 0;
	if (r->alone)
		r->alone--;
	else if (r->strikes && ++r->healthy >= ticks_alone(r))
		r->strikes = 0;
}

void query_record_isolate(struct query_record *r)
{
	r->is_fusable = false;
	if (r->strikes == 0 || (r->alone == 0 && r->strikes < QUERY_STRIKES_MAX))
		r->strikes++;
	r->alone = ticks_alone(r);
	r->healthy = 0;
}

void query_record_failed(struct query_record *r, int64_t now_ms, int64_t retry_after_ms, uint64_t source_epoch)
{
	int64_t wait_ms = 0;
	query_record_isolate(r);
	r->source_epoch = source_epoch;
	if (r->failures < UINT8_MAX)
		r->failures++;
	if (r->failures >= QUERY_FAILURES_MAX) {
		int doublings = r->failures - QUERY_FAILURES_MAX;
		wait_ms = doublings < 5 ? (int64_t)QUERY_BACKOFF_MIN_MS << doublings : QUERY_BACKOFF_MAX_MS;
	}
	if (retry_after_ms > PROMQL_RETRY_AFTER_MS)
		retry_after_ms = PROMQL_RETRY_AFTER_MS;
	r->ask_after_ms = now_ms + (retry_after_ms > wait_ms ? retry_after_ms : wait_ms);
}

void query_record_set_apart(struct query_record *r)
{
	if (r->alone < QUERY_ALONE_TICKS)
		r->alone = QUERY_ALONE_TICKS;
}

void query_record_begin(struct query_record *r, uint64_t source_epoch)
{
	if (r->strikes == 0 || r->source_epoch == source_epoch)
		return;
	r->strikes = r->failures = 0;
	r->alone = 0;
	r->ask_after_ms = 0;
}

bool query_record_may_fuse(const struct query_record *r)
{
	return r->is_fusable && r->is_measured && r->slow == 0 && r->alone == 0;
}

bool query_record_is_slow(const struct query_record *r)
{
	return !r->is_measured || r->slow > 0;
}

bool query_record_is_isolated(const struct query_record *r)
{
	return r->strikes > 0 && r->alone > 0;
}

int64_t query_record_wait_ms(const struct query_record *r, int64_t now_ms)
{
	int64_t wait_ms = r->ask_after_ms - now_ms;
	// The wall clock may have been set back in between.
	return wait_ms > 0 && wait_ms <= PROMQL_RETRY_AFTER_MS ? wait_ms : 0;
}
