// SPDX-License-Identifier: Apache-2.0
// One GET at a time over libevent, for the mock's replicas and the commands that ask a running exporter. Not
// base/http_client: its libcurl brings thirty libraries and 4 MiB of resident memory, which an exporter on every GPU
// node must not pay for its demonstration mode. No redirects, no proxies, no kept-alive connections.
#ifndef GPUSCALE_EXPORTER_MOCK_FETCH_H
#define GPUSCALE_EXPORTER_MOCK_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct mock_fetch;

#define MOCK_FETCH_BODY_BYTES_MAX   (20 * 1024 * 1024) // the commands fetch whole pages of metrics
#define MOCK_FETCH_HEADER_BYTES_MAX (64 * 1024)

// error NULL: a reply with any status. The body lives until the callback returns. Kinds of error: ERR_UNREACHABLE,
// ERR_TIMEOUT, ERR_TLS, ERR_LIMIT, ERR_PROTOCOL, ERR_INTERNAL.
typedef void mock_fetch_done_fn(void *arg, int status, const char *body, size_t len, const struct err *error);

// url: http or https; ca_file: PEM certificates to trust instead of the system's, or NULL. NULL and *e (ERR_INPUT,
// ERR_TLS, ERR_INTERNAL) when they cannot be used.
struct mock_fetch *mock_fetch_new(struct event_base *loop, const char *url, const char *ca_file, int64_t timeout_ms,
                                  mock_fetch_done_fn *done, void *arg, struct err *e);
// Drops a request under way without calling back.
void mock_fetch_free(struct mock_fetch *f);
// Sends the GET; bearer_token may be NULL. The outcome comes from the loop. -1 and *e when it cannot be sent.
int mock_fetch_start(struct mock_fetch *f, const char *bearer_token, struct err *e);
bool mock_fetch_is_busy(const struct mock_fetch *f);

#endif
