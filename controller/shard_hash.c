// SPDX-License-Identifier: Apache-2.0
#include "controller/shard_hash.h"

#include <assert.h>
#include <string.h>

// FNV-1a, 64 bits (Fowler, Noll, Vo). The terminator is hashed, too, so that "a" "bc" and "ab" "c" differ.
static uint64_t hash_text(uint64_t h, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	do {
		h = (h ^ *p) * 0x100000001b3u;
	} while (*p++);
	return h;
}
#define HASH_START 0xcbf29ce484222325u

// FNV-1a's high bits hardly change with the last bytes: this spreads them (finalizer of MurmurHash3).
static uint64_t mix(uint64_t h)
{
	h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
	h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
	return h ^ (h >> 33);
}

int32_t shard_of(const char *namespace_name, const char *name, int32_t n_shards)
{
	assert(n_shards >= 1);
	uint64_t key = mix(hash_text(hash_text(HASH_START, namespace_name), name));
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
	return mix(hash_text(HASH_START, member) + (uint64_t)shard * 0x9e3779b97f4a7c15u);
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
			// `larger` members have one more than the least; once they are found, nobody else may.
			if (load[m] > least || (load[m] == least && larger == 0))
				continue;
			uint64_t rank = rank_of(k, members[m]);
			if (best < n_members &&
			    (rank < best_rank || (rank == best_rank && strcmp(members[m], members[best]) > 0)))
				continue;
			best = m;
			best_rank = rank;
		}
		assert(best < n_members); // the rooms add up to n_shards
		larger -= load[best] == least;
		load[best]++;
		ret_owner[k] = best;
	}
}

uint64_t shard_member_hash(const char *identity)
{
	return mix(hash_text(HASH_START, identity));
}
