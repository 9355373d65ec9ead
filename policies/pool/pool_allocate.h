// SPDX-License-Identifier: Apache-2.0
// The allocator of a pool: many requests and one pool of GPUs -> grants. Pure: it reads no clock and keeps no state.
//
// The share of a member is what it gets once every PATCH has been carried out:
//   1. Every member gets its guaranteed minimum, in the order of step 2, until the pool is used up.
//   2. Members are served by priority, backfill members after all others. Members of equal priority share by weighted
//      max-min fairness: the next replica goes to the member with the fewest GPUs per unit of weight that has room for
//      it. Among equals the first place moves by one with each turn, so that none waits for ever.
//   3. A member that is fixed keeps what it has. In the steps before it claims no more than that. What it has in excess
//      of what they give to it is taken from GPUs that no other member has, or is not entitled to.
//   4. Of a pair with a ratio, the member that has too many gets fewer, and the others get what it leaves.
// No member requests, uses or gets more than its `most`, so no input of a member costs the others more than that.
//
// The grant of a member is what it may be scaled to now. Scale-downs are granted at once. A scale-up is granted only
// from GPUs that no member uses, where each member uses the larger of its current and its pending replicas, and only
// up to the share: the cap is kept at every instant, whichever of the PATCHes are carried out. GPUs that are part of a
// share and not granted yet are reserved; no other member may borrow them.
#ifndef GPUSCALE_POLICIES_POOL_POOL_ALLOCATE_H
#define GPUSCALE_POLICIES_POOL_POOL_ALLOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- what is requested ----

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

// Millionths of the currency that one replica costs per hour.
static inline int64_t pool_replica_micro(const struct pool_member *m)
{
	return m->price_micro * m->gpus_per_replica;
}

// ---- what is granted ----

enum pool_reason {
	POOL_GRANTED,
	POOL_AT_MIN,          // more than asked: minReplicas takes precedence
	POOL_AT_MAX,          // fewer than asked: maxReplicas takes precedence
	POOL_LIMITED,         // the cap
	POOL_BUDGET_LIMITED,  // the hourly budget, or what the monthly one allows now
	POOL_RATIO_LIMITED,   // the ratio to another member
	POOL_WAITING,         // GPUs of its share are still used by other members
	POOL_KEPT,            // no metrics, or not to be moved
	POOL_MEMBER_LIMITED,  // what the pool allows this member
	POOL_MINIMUMS_EXCEED, // fewer than its guaranteed minimum: those of all members need more than the cap
	POOL_HELD,            // the pool cannot share its GPUs
	POOL_REASON__COUNT
};

struct pool_reason_info {
	const char *name;
	// The text after "requested 12, granted 8". {pool}, {used}, {gpus}, {share}, {most} and {minimums} are filled
	// in (policies/explain/explain.h).
	const char *sentence;
};

extern const struct pool_reason_info pool_reasons[POOL_REASON__COUNT];

struct pool_grant {
	int32_t replicas; // scale the target to this now
	int32_t share;    // what it would be once every PATCH has been carried out
	int32_t most;     // limit of the pool for the member
	enum pool_reason reason;
	// for the allocator only
	int32_t value, limit, order, heap;
};

struct pool_total {
	int64_t used_gpus;     // the larger of grant, current and pending replicas of each member
	int64_t used_micro;    // the same as money per hour
	int64_t minimum_gpus;  // the sum of the guaranteed minimums
	int64_t minimum_micro; // the same as money per hour
};

// Fills grants[i] for members[i] of `request`, n_members of them, and *ret_total.
void pool_allocate(const struct pool_request *request, struct pool_grant *grants, struct pool_total *ret_total);

// ---- the arithmetic of a ratio ----

// The fewest and the most replicas of the one that `to` replicas of the other allow, and the reverse. At most
// POOL_REPLICAS_MAX.
int32_t pool_pair_of_min(const struct pool_ratio *r, int64_t to);
int32_t pool_pair_of_max(const struct pool_ratio *r, int64_t to);
int32_t pool_pair_to_min(const struct pool_ratio *r, int64_t of);
int32_t pool_pair_to_max(const struct pool_ratio *r, int64_t of);

#endif
