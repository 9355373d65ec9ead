// SPDX-License-Identifier: Apache-2.0
// Assigns policies to shards, and shards to processes: pure functions of names.
#ifndef GPUSCALE_RUNTIME_SHARD_SHARD_HASH_H
#define GPUSCALE_RUNTIME_SHARD_SHARD_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SHARDS_MAX  256
#define MEMBERS_MAX 256

// Returns the shard (0..n-1) of a policy. One more shard moves 1/(n+1) of the policies, all of them to the new one.
// Lamping, Veach: A Fast, Minimal Memory, Consistent Hash Algorithm, 2014, figure 1 (jump hash), on 64-bit FNV-1a.
int32_t shard_of(const char *namespace_name, const char *name, int32_t n_shards);

// Spreads n_shards over members[0..n_members), names without duplicates, n_members >= 1: ret_owner[k] is the index of
// the member that should own shard k. Every process that knows the same members gets the same answer, in any order of
// members. Each shard goes to the member that ranks highest for it (Thaler, Ravishankar: Using Name-Based
// Mappings to Increase Hit Rates, 1998, rendezvous hashing) among those with room: no two members differ by more than
// one shard, so few shards move when a member comes or goes.
void shard_plan(int32_t n_shards, const char *const *members, size_t n_members, size_t ret_owner[SHARDS_MAX]);

#endif
