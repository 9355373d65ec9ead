// SPDX-License-Identifier: Apache-2.0
// What the files of the Prometheus client share. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_PRIVATE_H
#define GPUSCALE_PROMQL_PROMQL_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "promql/promql.h"
#include "promql/promql_auth.h"

struct promql {
	struct http_client *http;
	char *url; // base without trailing '/', for messages
	char *query_url, *range_url, *buildinfo_url;
	char **headers; // NULL-terminated
	char *timeout;  // as the form says it
	struct http_tls tls;
	int64_t timeout_ms;
	size_t max_body_bytes;
	struct promql_auth auth;
	const struct clock *clock;
	struct clock own_clock;
	struct arena arena; // of the reply being handed over
	struct promql_call *calls;
	bool use_get;
	enum promql_kind asked_kind; // of the options
	enum promql_kind kind;       // PROMQL_KIND_AUTO: not known yet
	char version[PROMQL_VERSION_BYTES];
	struct http_call *detection; // NULL: none under way
	bool closing, in_callback;
};

struct promql_call {
	struct promql *p;
	struct promql_call *prev, *next;
	struct http_call *http; // NULL: waits until it is known whom we talk to
	bool is_range;
	struct buf form;
	int64_t lookback_ms;
	int64_t started_mono_ms;
	uint64_t generation; // of the secret it was sent with
	bool retried;
	promql_done_fn *done;
	void *arg;
};

// Checks and copies what `o` says into *p, which is zeroed. -1 and *e as promql_new; what was copied is freed by
// promql_free_options.
int promql_take_options(struct promql *p, const struct promql_options *o, struct err *e);
void promql_free_options(struct promql *p);

// Asks the server who it is; the calls that wait are sent, or fail, when it has answered. -1 and *e when it cannot be
// asked.
int promql_detect(struct promql *p, int64_t now_mono_ms, struct err *e);
// Sends a call to a server of a known kind.
int promql_send(struct promql_call *call, int64_t now_mono_ms, struct err *e);
// Ends a call with an error that names the server already.
void promql_end_failed(struct promql_call *call, const struct err *error);

#endif
