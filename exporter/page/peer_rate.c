// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/peer_rate.h"

#include <stdio.h>
#include <string.h>

bool peer_rate_take(int64_t *full_ms, int64_t interval_ms, int64_t burst, int64_t now_ms)
{
	int64_t full = *full_ms > now_ms ? *full_ms : now_ms;
	if (full - now_ms > (burst - 1) * interval_ms)
		return false;
	*full_ms = full + interval_ms;
	return true;
}

struct peer_rate_entry *peer_rate_find(struct peer_rate *r, const char *peer)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->entries[i].peer, peer) == 0)
			return &r->entries[i];
	return NULL;
}

// Returns the least recently used entry of the trusted peers or of the others; NULL if there is none.
static struct peer_rate_entry *oldest(struct peer_rate *r, bool trusted)
{
	struct peer_rate_entry *found = NULL;
	for (size_t i = 0; i < r->n; i++)
		if (r->entries[i].trusted == trusted && (!found || r->entries[i].used_ms < found->used_ms))
			found = &r->entries[i];
	return found;
}

static size_t count_trusted(const struct peer_rate *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		n += r->entries[i].trusted;
	return n;
}

struct peer_rate_entry *peer_rate_add(struct peer_rate *r, const char *peer, bool trusted, int64_t now_ms)
{
	struct peer_rate_entry *entry = peer_rate_find(r, peer);
	bool becomes_trusted = trusted && !(entry && entry->trusted);
	if (becomes_trusted && count_trusted(r) == PEER_RATE_TRUSTED_MAX)
		oldest(r, true)->trusted = false; // it can be evicted now
	if (!entry) {
		entry = r->n < PEER_RATE_PEERS_MAX ? &r->entries[r->n++] : oldest(r, false);
		*entry = (struct peer_rate_entry){.trusted = false};
		snprintf(entry->peer, sizeof entry->peer, "%s", peer);
	}
	entry->trusted |= trusted;
	entry->used_ms = now_ms;
	return entry;
}
