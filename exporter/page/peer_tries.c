// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/peer_tries.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

#define PREFIX_BYTES 8 // of an IPv6 address, the /64

// A host chooses the second half of its IPv6 address, and may use a new one for each connection.
static bool has_prefix(const char *peer, unsigned char ret_prefix[PREFIX_BYTES])
{
	struct in6_addr address;
	char text[INET6_ADDRSTRLEN];
	peer += peer[0] == '[';
	snprintf(text, sizeof text, "%.*s", (int)strcspn(peer, "]%"), peer);
	if (inet_pton(AF_INET6, text, &address) != 1 || IN6_IS_ADDR_V4MAPPED(&address))
		return false;
	memcpy(ret_prefix, &address, PREFIX_BYTES);
	return true;
}

static uint8_t *counter(struct peer_tries *t, int row, const void *id, size_t len)
{
	return &t->counts[row][hash_mix(hash_bytes(HASH_START ^ t->keys[row], id, len)) % PEER_TRIES_COUNTERS];
}

static unsigned count_of(struct peer_tries *t, const void *id, size_t len)
{
	unsigned n = UINT8_MAX;
	for (int row = 0; row < PEER_TRIES_ROWS; row++) {
		unsigned of_row = *counter(t, row, id, len);
		n = of_row < n ? of_row : n;
	}
	return n;
}

// Raises only the counters that are too low, so that addresses with shared counters disturb each other less.
static void add(struct peer_tries *t, const void *id, size_t len, unsigned n)
{
	unsigned sum = count_of(t, id, len) + n;
	uint8_t after = (uint8_t)(sum < UINT8_MAX ? sum : UINT8_MAX);
	for (int row = 0; row < PEER_TRIES_ROWS; row++) {
		uint8_t *c = counter(t, row, id, len);
		*c = *c > after ? *c : after;
	}
}

static int level_of(unsigned n)
{
	int level = 0;
	for (; n > 0 && level < PEER_TRIES_LEVELS - 1; n /= 2)
		level++;
	return level;
}

static void halve(struct peer_tries *t, int64_t now_ms)
{
	int64_t times = (now_ms - t->halved_ms) / PEER_TRIES_HALVE_MS;
	if (times <= 0)
		return;
	t->halved_ms += times * PEER_TRIES_HALVE_MS;
	for (int row = 0; row < PEER_TRIES_ROWS; row++)
		for (size_t i = 0; i < PEER_TRIES_COUNTERS; i++)
			t->counts[row][i] = (uint8_t)(times < 8 ? t->counts[row][i] >> times : 0);
}

int peer_tries_level(struct peer_tries *t, const char *peer, int64_t now_ms)
{
	unsigned char prefix[PREFIX_BYTES];
	halve(t, now_ms);
	unsigned own = count_of(t, peer, strlen(peer));
	unsigned shared = has_prefix(peer, prefix) ? count_of(t, prefix, sizeof prefix) / PEER_TRIES_PREFIX : 0;
	return level_of(own > shared ? own : shared);
}

void peer_tries_add(struct peer_tries *t, const char *peer, unsigned n)
{
	unsigned char prefix[PREFIX_BYTES];
	add(t, peer, strlen(peer), n);
	if (has_prefix(peer, prefix))
		add(t, prefix, sizeof prefix, 1);
}
