// SPDX-License-Identifier: Apache-2.0
// Pushes the metrics to an OTLP/HTTP endpoint. The sampler thread encodes a round once per interval; the event loop
// sends it, up to OTLP_ATTEMPTS_MAX times (exporter/otlp/otlp_delivery.h) unless a newer round replaces it. Nothing
// waits for the endpoint: a scrape and a sample take as long as without it. No round is encoded during an attempt, so
// that at most one encoded round is kept; the first round after the attempt follows.
#ifndef GPUSCALE_EXPORTER_OTLP_OTLP_PUSH_H
#define GPUSCALE_EXPORTER_OTLP_OTLP_PUSH_H

#include <stdint.h>

#include "exporter/otlp/otlp_encode.h"

struct err;
struct event_base;
struct log;
struct otlp_push;

#define OTLP_INTERVAL_MS     15000 // default
#define OTLP_INTERVAL_MIN_MS 1000
#define OTLP_INTERVAL_MAX_MS (10 * 60 * 1000)
#define OTLP_BYTES_MAX       (8 * 1024 * 1024)

struct otlp_push_options {
	struct event_base *loop; // not owned, like all pointers below
	struct log *log;         // may be NULL
	const char *endpoint;    // http or https URL; /v1/metrics is appended unless the path ends with it
	const char *ca_file;     // PEM, for https; NULL: those of the system
	int64_t interval_ms;
	struct otlp_encode_options encode;
};

struct otlp_push_status {
	uint64_t sent;    // rounds that the endpoint accepted, at least in part
	uint64_t failed;  // attempts that failed or were accepted in part
	uint64_t dropped; // rounds that were not accepted after the last attempt, or rejected
};

// Returns NULL and fills `e` (the errors of http_call_new()) if the endpoint is unusable.
struct otlp_push *otlp_push_new(const struct otlp_push_options *options, struct err *e);
void otlp_push_free(struct otlp_push *p);
// Encodes the round if one is due. Call it from the sampler thread.
void otlp_push_round(struct otlp_push *p, const struct sampler_round *round);
// Call it from the thread of the loop.
struct otlp_push_status otlp_push_get_status(const struct otlp_push *p);

#endif
