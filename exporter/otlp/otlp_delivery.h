// SPDX-License-Identifier: Apache-2.0
// The rules for delivering requests with OTLP/HTTP, one after the other: the URL, what a reply means, and when the next
// attempt comes. The caller sends the requests.
#ifndef GPUSCALE_EXPORTER_OTLP_OTLP_DELIVERY_H
#define GPUSCALE_EXPORTER_OTLP_OTLP_DELIVERY_H

#include <stddef.h>
#include <stdint.h>

struct err;

#define OTLP_URL_BYTES      4096
#define OTLP_TIMEOUT_MS     10000 // timeout of one attempt
#define OTLP_ATTEMPTS_MAX   4     // attempts per request
#define OTLP_PAUSE_MS       1000  // before the second attempt at most; the pause doubles
#define OTLP_RETRY_AFTER_MS 60000 // the longest Retry-After that is honoured
#define OTLP_WHY_BYTES      320
#define OTLP_REPLY_BYTES    65536 // bytes of a reply that are read

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

// The reply to an attempt. With `error`, no reply came, and the other members are not read.
struct otlp_reply {
	const struct err *error;
	int status;
	const char *body;
	size_t len;
	int64_t retry_after_ms; // 0: none
};

// Writes the URL for `endpoint` to `url`: the endpoint followed by `path` ("/v1/metrics"), unless it ends with `path`.
// Returns 0, or -1 and *e (ERR_LIMIT).
int otlp_url(const char *endpoint, const char *path, char url[OTLP_URL_BYTES], struct err *e);

// Evaluates the reply to an attempt of the current request. After OTLP_AGAIN the same request is to be sent again;
// after each other outcome the next reply belongs to another request. Writes the cause of a failure or rejection to
// `why`, else "".
enum otlp_outcome otlp_delivery_take(struct otlp_delivery *d, const struct otlp_reply *reply, char why[OTLP_WHY_BYTES]);

#endif
