// SPDX-License-Identifier: Apache-2.0
// A TCP client on loopback that sends given bytes and keeps what comes back: for requests no real client would send.
// Runs in the test's own event loop.
#ifndef GPUSCALE_TEST_SUPPORT_RAW_CLIENT_H
#define GPUSCALE_TEST_SUPPORT_RAW_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct raw_client;

struct raw_client *raw_client_new(struct event_base *loop, uint16_t port); // NULL on failure
void raw_client_free(struct raw_client *c);
void raw_client_send(struct raw_client *c, const char *data, size_t len); // len 0: strlen
// No more from this side (FIN), once what was sent is out.
void raw_client_shutdown(struct raw_client *c);
// The server's side has all that was sent, and that there will be no more: its kernel has confirmed it.
bool raw_client_is_shut(const struct raw_client *c);
// Takes no more of what the server sends.
void raw_client_pause(struct raw_client *c);
// Everything received so far, NUL-terminated; valid until the next turn of the loop.
const char *raw_client_text(struct raw_client *c);
// Becomes 1 when the server has closed (or reset) the connection: for test_loop_until.
const int *raw_client_closed(const struct raw_client *c);
// How often `text` occurs in what was received.
int raw_client_count(struct raw_client *c, const char *text);

#endif
