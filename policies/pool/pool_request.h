// SPDX-License-Identifier: Apache-2.0
// Input of the allocator of a pool: a cap in GPUs, an hourly budget, and the request of each member.
#ifndef GPUSCALE_POLICIES_POOL_POOL_REQUEST_H
#define GPUSCALE_POLICIES_POOL_POOL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_MEMBERS_MAX          10000
#define POOL_RATIOS_MAX           64
#define POOL_GPUS_MAX             1000000
#define POOL_GPUS_PER_REPLICA_MAX 1024
#define POOL_REPLICAS_MAX         1000000
#define POOL_PRIORITY_MAX         1000000000
#define POOL_WEIGHT_MAX_MILLI     1000000             // a weight of 1000
#define POOL_COST_MAX_MICRO       1000000000000000000 // cost of a pool and hour, 10^12 of the currency
#define POOL_PRICE_MAX_MICRO      1000000000          // price of one GPU and hour, 1000 of the currency

struct pool_member {
	int32_t asked;   // replicas that the policy of the member wants
	int32_t current; // replicas in the last acknowledged version of the target
	int32_t pending; // replicas in a PATCH that is not acknowledged yet; `current` = there is none
	int32_t min, max;
	int32_t guaranteed;       // part of `min` that may be taken from the replicas of other members
	int32_t most;             // the pool allows no more replicas, whatever the member asks for, has or claims
	int32_t gpus_per_replica; // 1..POOL_GPUS_PER_REPLICA_MAX
	int32_t priority;         // larger first
	int32_t weight_milli;     // 1..POOL_WEIGHT_MAX_MILLI: the share at equal priority, in thousandths
	int64_t price_micro;      // price of one GPU and hour, in millionths of the currency; 0 = without a price
	bool backfill;            // takes what the other members leave, and yields it first
	bool is_fixed;            // no metrics, paused, or not to be moved for another reason: keeps what it has
};

// `n` replicas of one member for each replica of the other, between min_milli and max_milli thousandths, to within one
// replica: min * to - max(min, 1) < of < max * to + max(max, 1).
struct pool_ratio {
	size_t of, to; // indexes of two members; a member belongs to one ratio at most
	int64_t min_milli, max_milli;
};

struct pool_request {
	int64_t gpus;         // the cap, 0..POOL_GPUS_MAX
	bool has_budget;      // else budget_micro is not read
	int64_t budget_micro; // per hour, 0..POOL_COST_MAX_MICRO
	uint64_t turn;        // rotates who is served first among equals: a number that grows once per turn of the pool
	const struct pool_member *members; // in the same order each time
	size_t n_members;                  // 0..POOL_MEMBERS_MAX
	const struct pool_ratio *ratios;
	size_t n_ratios; // 0..POOL_RATIOS_MAX
};

// Replicas that count against the cap before this tick: the larger of `current` and `pending`, because a PATCH that is
// not acknowledged may have been carried out or not; at most `most`.
static inline int32_t pool_held(const struct pool_member *m)
{
	int32_t n = m->current > m->pending ? m->current : m->pending;
	return n < m->most ? n : m->most;
}

// Replicas of `min` that take precedence over what the other members request and use.
static inline int32_t pool_guaranteed(const struct pool_member *m)
{
	int32_t n = m->guaranteed < m->min ? m->guaranteed : m->min;
	return n < m->most ? n : m->most;
}

#endif
