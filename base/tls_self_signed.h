// SPDX-License-Identifier: Apache-2.0
// A certificate signed by its own key, made in memory: for a server that nobody gave one. It encrypts, but proves
// nothing to a client that does not know it beforehand.
#ifndef GPUSCALE_BASE_TLS_SELF_SIGNED_H
#define GPUSCALE_BASE_TLS_SELF_SIGNED_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

#define TLS_SELF_SIGNED_DAYS 3650

// An EC key (P-256) and its certificate for these DNS names (at least one, which is the subject as well), valid from a
// day before wall_ms on. Appended to the buffers as PEM; whoever owns `key` wipes it. ERR_INPUT for a name that is
// none.
int tls_self_signed(const char *const *dns_names, size_t n, int64_t wall_ms, struct buf *cert, struct buf *key,
                    struct err *e);

#endif
