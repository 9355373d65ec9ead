// SPDX-License-Identifier: Apache-2.0
// Replies that come piece by piece, for as long as they like: the watches of the fake API server. The product's server
// only has a place for them (struct http_stream_ops in base/http/http_server_internal.h).
//
// Chunked for HTTP/1.1; for HTTP/1.0 the end of the connection ends the reply. It has no deadline, but a client must
// take what is written: it is cut off when it leaves too much untaken, or takes nothing for idle_ms while something
// waits. Closing or half-closing its connection is how a client leaves.
#ifndef GPUSCALE_TEST_SUPPORT_HTTP_STREAM_H
#define GPUSCALE_TEST_SUPPORT_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/http/http_server.h"

#define HTTP_STREAM_BACKLOG_MAX (16 * 1024 * 1024) // bytes that the client has not taken yet

// The client has left or was cut off, or the server is being freed; x is gone. Called from the loop, or from
// http_server_free, never from http_exchange_write.
typedef void http_closed_fn(void *arg);
// Sends the head. True: x stays the caller's until http_exchange_end, http_exchange_abort or on_close (which may be
// NULL), whichever is first. False: the reply cannot be streamed (the client has gone, memory is exhausted, or the
// headers are too large and it got a 500); x is gone, and on_close is not called.
bool http_exchange_reply_start(struct http_exchange *x, int status, const char *content_type, http_closed_fn *on_close,
                               void *arg);
// Replaces HTTP_STREAM_BACKLOG_MAX for this reply, which has started.
void http_exchange_limit_backlog(struct http_exchange *x, size_t max_bytes);
// One piece, sent at once, copied. Over the ceiling the client is cut off: on_close follows from the loop, and what is
// written until then is dropped. HEAD gets none of it.
void http_exchange_write(struct http_exchange *x, const char *data, size_t len);
// Ends the reply, and the exchange.
void http_exchange_end(struct http_exchange *x);
// In the middle of a reply, or instead of one: the connection is closed with nothing (more) sent; x is gone.
void http_exchange_abort(struct http_exchange *x);

#endif
