// SPDX-License-Identifier: Apache-2.0
// Pushes the metrics to an OTLP/HTTP endpoint, as ExportMetricsServiceRequests of OTLP 1.x in JSON
// (opentelemetry-proto: metrics.proto, "OTLP/HTTP"). Metrics have the names, units and attributes of
// exporter/families.h. Every point has hw.id: the UUID of the GPU or MIG instance, or, for a temperature, the UUID and
// the location of the sensor, with the UUID in hw.parent. The sampler thread encodes a round once per interval; the
// event loop sends it, up to OTLP_ATTEMPTS_MAX times unless a newer round replaces it. Nothing waits for the endpoint:
// a scrape and a sample take as long as without it. No round is encoded during an attempt, so that at most one encoded
// round is kept; the first round after the attempt follows.
#ifndef GPUSCALE_EXPORTER_OTLP_OTLP_PUSH_H
#define GPUSCALE_EXPORTER_OTLP_OTLP_PUSH_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct event_base;
struct health_policy;
struct log;
struct otlp_push;
struct pod_share;
struct sampler_round;
struct xid_store;

struct otlp_encode_options {
	const char *hostname;               // resource attribute host.name; "" leaves it out
	const struct pod_share *sidecar_of; // resource attributes k8s.*; NULL: none
	const struct health_policy *health; // rules of hw.status
	struct xid_store *xids;
};

// Appends the round as a request to `out`; out->failed is set above the limit of `out`.
void otlp_encode(const struct otlp_encode_options *o, const struct sampler_round *round, struct buf *out);

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

// ---- the rules of delivery ----

// Requests are delivered one after the other: the URL, what a reply means, and when the next attempt comes.

#define OTLP_URL_BYTES    4096
#define OTLP_TIMEOUT_MS   10000 // timeout of one attempt
#define OTLP_ATTEMPTS_MAX 4     // attempts per request
#define OTLP_PAUSE_MS     1000  // before the second attempt at most; the pause doubles
#define OTLP_WHY_BYTES    320
#define OTLP_REPLY_BYTES  65536 // bytes of a reply that are read

// The outcome of an attempt.
enum otlp_outcome {
	OTLP_ACCEPTED, // by the endpoint, as a whole
	OTLP_PARTIAL,  // the endpoint rejected some items; they must not be sent again
	OTLP_AGAIN,    // failed; another attempt comes after `wait_ms`
	OTLP_GIVEN_UP, // failed, and no further attempt is made
};

// Zero it before use.
struct otlp_delivery {
	int attempts;     // attempts of the current request
	int64_t wait_ms;  // OTLP_AGAIN: the pause before the next attempt
	int64_t rejected; // OTLP_PARTIAL: the number of rejected items
};

// Writes the URL for `endpoint` to `url`: the endpoint followed by "/v1/metrics", unless it ends with it. Returns 0, or
// -1 and *e (ERR_LIMIT).
int otlp_url(const char *endpoint, char url[OTLP_URL_BYTES], struct err *e);

// Evaluates the reply to an attempt of the current request, as http_call_done_fn receives it. After OTLP_AGAIN the same
// request is to be sent again; after each other outcome the next reply belongs to another request. Writes the cause of
// a failure or rejection to `why`, else "".
enum otlp_outcome otlp_delivery_take(struct otlp_delivery *d, int status, const char *body, size_t len,
                                     const struct err *error, char why[OTLP_WHY_BYTES]);

#endif
