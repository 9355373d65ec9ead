// SPDX-License-Identifier: Apache-2.0
// Keeps the TLS of a server as its files are: looked at every second, read again when one of them changes. What cannot
// be used is logged, and what was stays in force; new connections speak the new, open ones keep the old.
#ifndef GPUSCALE_CONTROLLER_TLS_FOLLOWER_H
#define GPUSCALE_CONTROLLER_TLS_FOLLOWER_H

#include <stdint.h>

struct err;
struct event_base;
struct http_server;
struct http_server_options;
struct log;
struct tls_follower;

#define TLS_FOLLOWER_MS 1000

struct tls_follower_stats {
	uint64_t reloads, failures;
};

// tls: the tls_* members are used, and must live as long; name is what the log calls the server. NULL and *e when
// memory ends.
struct tls_follower *tls_follower_new(struct event_base *loop, struct http_server *server,
                                      const struct http_server_options *tls, const char *name, struct log *log,
                                      struct err *e);
void tls_follower_free(struct tls_follower *f); // NULL is fine
void tls_follower_get_stats(const struct tls_follower *f, struct tls_follower_stats *ret_stats);

#endif
