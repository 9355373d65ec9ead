// SPDX-License-Identifier: Apache-2.0
// A TCP server on loopback that plays a script at every connection: for replies no real server would send.
// Runs in the test's own event loop.
#ifndef GPUSCALE_TEST_SUPPORT_RAW_SERVER_H
#define GPUSCALE_TEST_SUPPORT_RAW_SERVER_H

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct raw_server;

enum raw_step_kind {
	RAW_READ_REQUEST, // wait for a head and the body its Content-Length announces
	RAW_SEND,         // data, len (0: strlen)
	RAW_SEND_TIMES,   // data, times over
	RAW_WAIT,         // ms
	RAW_HOLD,         // wait until raw_server_go
	RAW_REPEAT,       // go back to the first step
	RAW_CLOSE,
	RAW_RESET // close so that the peer gets a reset
};

struct raw_step {
	enum raw_step_kind kind;
	const char *data;
	size_t len;
	int times;
	int ms;
};

// Initializers of one step.
#define STEP(k)                                                                                                        \
	{                                                                                                              \
		.kind = (k)                                                                                            \
	}
#define STEP_SEND(text)                                                                                                \
	{                                                                                                              \
		.kind = RAW_SEND, .data = (text)                                                                       \
	}
#define STEP_BYTES(bytes, n)                                                                                           \
	{                                                                                                              \
		.kind = RAW_SEND, .data = (bytes), .len = (n)                                                          \
	}
#define STEP_TIMES(text, n)                                                                                            \
	{                                                                                                              \
		.kind = RAW_SEND_TIMES, .data = (text), .times = (n)                                                   \
	}
#define STEP_WAIT(n)                                                                                                   \
	{                                                                                                              \
		.kind = RAW_WAIT, .ms = (n)                                                                            \
	}

struct raw_server_stats {
	int accepted, open, open_max, requests;
};

// After the last step a connection stays open, silent. The steps must outlive the server. NULL on failure.
struct raw_server *raw_server_new(struct event_base *loop, const struct raw_step *steps, size_t n_steps);
void raw_server_free(struct raw_server *s);
uint16_t raw_server_port(const struct raw_server *s);
// Every connection goes on that waits at RAW_HOLD.
void raw_server_go(struct raw_server *s);
// The bytes of the latest complete request, NUL-terminated.
const char *raw_server_request(const struct raw_server *s);
struct raw_server_stats raw_server_stats(const struct raw_server *s);

#endif
