// SPDX-License-Identifier: Apache-2.0
// One unary gRPC call over HTTP/2 without TLS ("h2c", prior knowledge), as bytes in and bytes out: no sockets, no time.
// Just what the kubelet's pod-resources socket needs: one stream, a request without a body, a reply within a ceiling
// that the windows allow for, so that none is ever sent again. No gRPC library: a node does not pay megabytes for one
// constant request. RFC 9113 (HTTP/2), RFC 7541 (HPACK), gRPC: PROTOCOL-HTTP2.md.
#ifndef GPUSCALE_EXPORTER_H2C_H
#define GPUSCALE_EXPORTER_H2C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

#define H2C_MESSAGE_BYTES_MAX (16 * 1024 * 1024)
#define H2C_FRAME_BYTES_MAX   16384 // payload; what a peer may send unless told otherwise (RFC 9113, 4.2)
#define H2C_HEADER_BYTES_MAX  (64 * 1024)
#define H2C_CONTROL_MAX       1024 // PING and SETTINGS frames of one call
#define H2C_PATH_BYTES_MAX    100

struct h2c {
	struct buf message; // the reply, whole once h2c_feed returned 1
	struct buf out;     // to be sent; the caller empties it (buf_reset)
	struct buf headers; // a header block under way
	size_t max_message_bytes;
	unsigned char frame[9 + H2C_FRAME_BYTES_MAX];
	size_t have; // bytes of it
	bool saw_settings;
	bool in_headers, headers_end_stream; // CONTINUATION frames must follow
	bool failed, done;
	size_t n_prefix; // bytes of the message's 5-byte prefix
	unsigned char prefix[5];
	size_t message_len; // as the prefix says
	int n_control;
	int grpc_status; // -1: none seen
};

// Begins a call of `path` ("/package.Service/Method", at most H2C_PATH_BYTES_MAX) with an empty request; `out` then
// holds what is to be sent first. max_message_bytes <= H2C_MESSAGE_BYTES_MAX.
void h2c_init(struct h2c *c, const char *path, size_t max_message_bytes);
void h2c_done(struct h2c *c);
// Takes bytes of the peer. 0: more must come, and `out` may have something to send. 1: the reply is in `message`.
// -1 and *e: ERR_PROTOCOL (not HTTP/2 or not gRPC), ERR_LIMIT (message past its ceiling), or what the gRPC status
// means: ERR_THROTTLED, ERR_UNSUPPORTED, ERR_SERVER, .. with the status in e->code.
int h2c_feed(struct h2c *c, const void *data, size_t len, struct err *e);

#endif
