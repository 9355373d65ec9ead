// SPDX-License-Identifier: Apache-2.0
#include "runtime/shard/shard_hash.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

int32_t shard_of(const char *namespace_name, const char *name, int32_t n_shards)
{
	assert(n_shards >= 1);
	uint64_t key = hash_mix(hash_text(hash_text(HASH_START, namespace_name), name));
	int64_t b = -1, j = 0;
	while (j < n_shards) {
		b = j;
		key = key * 2862933555777941757u + 1;
		j = (int64_t)((double)(b + 1) * ((double)(1LL << 31) / (double)((key >> 33) + 1)));
	}
	return (int32_t)b;
}

static uint64_t rank_of(int32_t shard, const char *member)
{
	return hash_mix(hash_text(HASH_START, member) + (uint64_t)shard * 0x9e3779b97f4a7c15u);
}

void shard_plan(int32_t n_shards, const char *const *members, size_t n_members, size_t ret_owner[SHARDS_MAX])
{
	assert(n_shards >= 1 && n_shards <= SHARDS_MAX && n_members >= 1 && n_members <= MEMBERS_MAX);
	size_t load[MEMBERS_MAX] = {0};
	size_t least = (size_t)n_shards / n_members, larger = (size_t)n_shards % n_members;
	for (int32_t k = 0; k < n_shards; k++) {
		size_t best = n_members;
		uint64_t best_rank = 0;
		for (size_t m = 0; m < n_members; m++) {
			// `larger` members get one more than the least; once these are found, no other may.
			if (load[m] > least || (load[m] == least && larger == 0))
				continue;
			uint64_t rank = rank_of(k, members[m]);
			if (best < n_members &&
			    (rank < best_rank || (rank == best_rank && strcmp(members[m], members[best]) > 0)))
				continue;
			best = m;
			best_rank = rank;
		}
		assert(best < n_members); // the capacities add up to n_shards
		larger -= load[best] == least;
		load[best]++;
		ret_owner[k] = best;
	}
}
