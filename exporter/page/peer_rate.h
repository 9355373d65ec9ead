// SPDX-License-Identifier: Apache-2.0
// A token bucket for each client address, in a table of fixed size.
#ifndef GPUSCALE_EXPORTER_PAGE_PEER_RATE_H
#define GPUSCALE_EXPORTER_PAGE_PEER_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_RATE_PEERS_MAX   256
#define PEER_RATE_TRUSTED_MAX 64 // trusted entries in PEER_RATE_PEERS_MAX; the others are for untrusted peers
#define PEER_RATE_NAME_BYTES  64

struct peer_rate_entry {
	char peer[PEER_RATE_NAME_BYTES]; // its address, as text
	bool trusted;
	int64_t used_ms; // when the entry was last used
	int64_t full_ms; // when its bucket will be full
};

struct peer_rate { // zero it before use
	struct peer_rate_entry entries[PEER_RATE_PEERS_MAX];
	size_t n;
};

// Takes one token at now_ms from a bucket that has room for `burst` tokens and gains one each interval_ms. Returns
// false when the bucket is empty. *full_ms is the state of the bucket; 0 is a full bucket.
bool peer_rate_take(int64_t *full_ms, int64_t interval_ms, int64_t burst, int64_t now_ms);

// Returns the entry of the peer, or NULL. Valid until the next peer_rate_add.
struct peer_rate_entry *peer_rate_find(struct peer_rate *r, const char *peer);
// Returns the entry of the peer. In a full table, the new entry replaces the least recently used one. Only a trusted
// peer can replace a trusted one, and at most PEER_RATE_TRUSTED_MAX peers are trusted, so a flood of addresses cannot
// evict them. Sets used_ms.
struct peer_rate_entry *peer_rate_add(struct peer_rate *r, const char *peer, bool trusted, int64_t now_ms);

#endif
