// SPDX-License-Identifier: Apache-2.0
// Follows the TLS files of a server: checks them every second and reloads them when one changes. When a changed file
// cannot be used, logs an error and keeps the previous certificate. New connections use the new certificate, open ones
// keep theirs.
#ifndef GPUSCALE_RUNTIME_OPTIONS_TLS_FOLLOWER_H
#define GPUSCALE_RUNTIME_OPTIONS_TLS_FOLLOWER_H

#include <stdint.h>

struct err;
struct event_base;
struct http_server;
struct http_server_options;
struct log;
struct tls_follower;

#define TLS_FOLLOWER_MS 1000

// Uses the tls_* members of *tls, whose strings must live as long. name: of the server, for the log. Returns NULL and
// *e when memory is exhausted.
struct tls_follower *tls_follower_new(struct event_base *loop, struct http_server *server,
                                      const struct http_server_options *tls, const char *name, struct log *log,
                                      struct err *e);
void tls_follower_free(struct tls_follower *f); // NULL is fine

#endif
