// SPDX-License-Identifier: Apache-2.0
// Sends each tick as spans to an OTLP/HTTP endpoint. A tick only adds to a compressed batch (controller/span_batch.h):
// when the batch is full, its spans are dropped and counted. The event loop sends the batch once per
// SPAN_EXPORT_INTERVAL_MS, one request at a time.
#ifndef GPUSCALE_CONTROLLER_SPAN_EXPORT_H
#define GPUSCALE_CONTROLLER_SPAN_EXPORT_H

#include <stdint.h>

struct clock;
struct decided;
struct err;
struct event_base;
struct log;
struct span_export;
struct tick_result;

#define SPAN_EXPORT_INTERVAL_MS 1000
#define SPAN_EXPORT_DRAIN_MS    2000

struct span_export_options {
	struct event_base *loop;   // not owned, like all pointers below
	const struct clock *clock; // for the times of the spans
	struct log *log;           // may be NULL
	const char *endpoint;      // http or https URL; /v1/traces is appended unless the path ends with it
	const char *ca_file;       // PEM, for https; NULL: those of the system
	const char *hostname;      // of this process; "": unknown
};

struct span_export_stats {
	uint64_t sent;    // spans that the endpoint accepted
	uint64_t dropped; // spans that it did not receive, or rejected
	uint64_t failed;  // attempts that failed or were accepted in part
};

// Returns NULL and *e (ERR_INPUT, ERR_LIMIT, ERR_NOT_FOUND, ERR_IO, ERR_INTERNAL) if the endpoint or the file of
// certificates is unusable. Copies the options, but not their strings.
struct span_export *span_export_new(const struct span_export_options *options, struct err *e);
// Queues the spans of a tick that has ended. `outcome` as in tick_span_append().
void span_export_tick(struct span_export *x, const struct decided *d, const struct tick_result *result,
                      const char *outcome);
// Sends what is queued, with one attempt, and runs the loop meanwhile, SPAN_EXPORT_DRAIN_MS at most. Call it before
// span_export_free() when the process exits. NULL is fine.
void span_export_drain(struct span_export *x);
// Frees the exporter; a request in flight is canceled. NULL is fine.
void span_export_free(struct span_export *x);
struct span_export_stats span_export_get_stats(const struct span_export *x);

#endif
