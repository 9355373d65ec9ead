// SPDX-License-Identifier: Apache-2.0
// Counts how often client addresses have tried to log in lately, for any number of addresses in a fixed amount of
// memory (a count-min sketch that halves its counts every minute). An address that shares its counters with others is
// counted too high, never too low.
#ifndef GPUSCALE_EXPORTER_PAGE_PEER_TRIES_H
#define GPUSCALE_EXPORTER_PAGE_PEER_TRIES_H

#include <stdint.h>

#define PEER_TRIES_ROWS     4
#define PEER_TRIES_COUNTERS 65536 // of each row; beside 10,000 addresses, 1 of 2,000 new ones is counted too high
#define PEER_TRIES_HALVE_MS 60000
#define PEER_TRIES_LEVELS   8 // 0: no try, 1: 1 try, 2: 2 or 3, 3: 4 to 7, ..
#define PEER_TRIES_PREFIX   4 // an IPv6 address has at least the level of this share of the tries of its /64

struct peer_tries { // zero it before use, and fill `keys` with random bytes
	uint64_t keys[PEER_TRIES_ROWS];
	uint8_t counts[PEER_TRIES_ROWS][PEER_TRIES_COUNTERS];
	int64_t halved_ms; // when the counts were halved last
};

// Returns the level of the address `peer`: the bits of the number of its tries, at most PEER_TRIES_LEVELS - 1.
int peer_tries_level(struct peer_tries *t, const char *peer, int64_t now_ms);
// Adds n tries to those of `peer`, and one to those of its /64.
void peer_tries_add(struct peer_tries *t, const char *peer, unsigned n);

#endif
