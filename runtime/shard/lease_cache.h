// SPDX-License-Identifier: Apache-2.0
// The leases of one group, as the watch and the polled lists report them, and since when each has been unchanged.
#ifndef GPUSCALE_RUNTIME_SHARD_LEASE_CACHE_H
#define GPUSCALE_RUNTIME_SHARD_LEASE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/lease/lease_record.h"

struct lease_cache_entry {
	struct lease_record record;
	int32_t shard;    // N of "PREFIX-N"; -1: another name
	int64_t seen_ms;  // boot clock: when this version was first observed
	bool was_renewed; // observed to change, or present in the first list: its holder is alive, or was recently
	uint64_t shown;   // number of the latest polled list requested when the lease was last reported
};

struct lease_cache {
	const char *prefix; // prefix of the names of the shards' leases; not copied
	int64_t duration_ms;
	struct lease_cache_entry *items; // sorted by name
	size_t n, room;
	uint64_t n_requested; // polled lists
	bool is_listed;       // a list was completed; leases that are reported later are new
};

// prefix is not copied. duration_ms is the shortest time for which a holder that was observed may hold its lease.
void lease_cache_init(struct lease_cache *b, const char *prefix, int64_t duration_ms);
void lease_cache_done(struct lease_cache *b);

// Processes one polled list: call lease_cache_begin before the request, lease_cache_observe with each record, then
// lease_cache_end with the number that lease_cache_begin returned. lease_cache_end removes the leases that neither this
// list nor the watch has reported since. Several lists may be in progress.
uint64_t lease_cache_begin(struct lease_cache *b);
// Records a lease that a list or the watch reported at now_ms (boot clock). record is copied. Returns -1 when memory is
// exhausted.
int lease_cache_observe(struct lease_cache *b, const struct lease_record *record, int64_t now_ms);
void lease_cache_end(struct lease_cache *b, uint64_t list);
// Removes a lease that was deleted. An unknown name is ignored.
void lease_cache_forget(struct lease_cache *b, const char *name);

// Return NULL when there is no such lease. The result is valid until the cache changes.
const struct lease_cache_entry *lease_cache_find(const struct lease_cache *b, const char *name);
const struct lease_cache_entry *lease_cache_find_shard(const struct lease_cache *b, int32_t shard);
// Returns whether the lease has a holder that may not have noticed yet that it expired.
bool lease_cache_is_live(const struct lease_cache *b, const struct lease_cache_entry *entry, int64_t now_ms);

#endif
