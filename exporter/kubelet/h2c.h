// SPDX-License-Identifier: Apache-2.0
// One unary gRPC call over HTTP/2 without TLS ("h2c", prior knowledge): bytes in, bytes out, no sockets and no clock.
// It covers what the kubelet's pod-resources socket needs: one stream, an empty request and one reply. libnghttp2 reads
// and writes the frames. A gRPC library would cost every node megabytes for one constant request. Reference:
// PROTOCOL-HTTP2.md of gRPC.
#ifndef GPUSCALE_EXPORTER_KUBELET_H2C_H
#define GPUSCALE_EXPORTER_KUBELET_H2C_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct err;
struct nghttp2_session;

#define H2C_MESSAGE_BYTES_MAX (16 * 1024 * 1024)
#define H2C_REPLY_BYTES_MAX   (2 * H2C_MESSAGE_BYTES_MAX) // bytes of all frames, also those that carry nothing
#define H2C_HEADER_BYTES_MAX  (64 * 1024)                 // names and values of all headers
#define H2C_CONTROL_MAX       1024                        // PING and SETTINGS frames of one call

struct h2c {
	struct buf message; // the reply; complete when h2c_feed() returns 1
	struct buf out;     // bytes to send; the caller empties it with buf_reset()
	struct nghttp2_session *session;
	struct err *error; // of the function in progress, for the callbacks
	size_t max_message_bytes;
	size_t received; // bytes of all frames
	size_t header_bytes;
	bool failed, done;
	size_t n_prefix; // bytes of the 5-byte message prefix received so far
	unsigned char prefix[5];
	size_t message_len; // from the prefix
	int n_control;
	int grpc_status; // -1: not received
};

// Prepares a call of `path` ("/package.Service/Method") with an empty request; `out` then contains the bytes to send
// first. `max_message_bytes` is at most H2C_MESSAGE_BYTES_MAX. Returns 0, or -1 and *e (ERR_INTERNAL). Release `c` with
// h2c_done() in both cases.
int h2c_init(struct h2c *c, const char *path, size_t max_message_bytes, struct err *e);
void h2c_done(struct h2c *c);
// Processes `len` bytes from the peer. Returns 0 if more bytes are needed (`out` may contain bytes to send), 1 when the
// reply is in `message`, and -1 on failure. `e` is then ERR_PROTOCOL (not HTTP/2 or not gRPC), ERR_LIMIT (message
// or reply above its limit), or the kind that belongs to the gRPC status, such as ERR_THROTTLED, ERR_UNSUPPORTED or
// ERR_SERVER, with the status in e->code.
int h2c_feed(struct h2c *c, const void *data, size_t len, struct err *e);

#endif
