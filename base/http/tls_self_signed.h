// SPDX-License-Identifier: Apache-2.0
// Creates a self-signed certificate in memory, for a server that was configured without one. It encrypts the
// connection, but does not authenticate the server to a client that does not already have the certificate.
#ifndef GPUSCALE_BASE_HTTP_TLS_SELF_SIGNED_H
#define GPUSCALE_BASE_HTTP_TLS_SELF_SIGNED_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

#define TLS_SELF_SIGNED_DAYS 3650

// Creates an EC key (P-256) and its certificate for `n` DNS names (at least one; the first is the subject), valid for
// TLS_SELF_SIGNED_DAYS from one day before `wall_ms`. Appends both as PEM; the caller wipes `key`. Returns 0, or -1 and
// *e: ERR_INPUT for an invalid name.
int tls_self_signed(const char *const *dns_names, size_t n, int64_t wall_ms, struct buf *cert, struct buf *key,
                    struct err *e);

#endif
