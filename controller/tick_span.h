// SPDX-License-Identifier: Apache-2.0
// Renders one tick as spans of OTLP in JSON: a span of the tick, with an event for each phase, and a child for each
// entry of the trace. decide() does not measure its stages, so a child has the start and the end of decide().
#ifndef GPUSCALE_CONTROLLER_TICK_SPAN_H
#define GPUSCALE_CONTROLLER_TICK_SPAN_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct decided;
struct tick_result;

// Identifies the trace of one tick; none of the numbers is 0. The children have the IDs after span_id.
struct tick_span_id {
	uint64_t trace_id[2], span_id;
};

// Returns the number of spans of the tick.
size_t tick_span_count(const struct tick_result *result);
// Appends the spans of `result` to `out`, with commas between them and one before the first if `out` is not empty.
// `outcome`: "ok", "deferred", "scaled" or "error". `end_ns` is the wall clock at the end of the tick, and `end_us` the
// monotonic clock at the same moment. Sets out->failed above the ceiling of `out`.
void tick_span_append(struct buf *out, const struct tick_span_id *id, const struct decided *d,
                      const struct tick_result *result, const char *outcome, int64_t end_ns, int64_t end_us);

#endif
