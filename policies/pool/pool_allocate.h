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

#include <stdint.h>

struct pool_grant;
struct pool_request;

struct pool_total {
	int64_t used_gpus;     // the larger of grant, current and pending replicas of each member
	int64_t used_micro;    // the same as money per hour
	int64_t minimum_gpus;  // the sum of the guaranteed minimums
	int64_t minimum_micro; // the same as money per hour
};

// Fills grants[i] for members[i] of `request`, n_members of them, and *ret_total.
void pool_allocate(const struct pool_request *request, struct pool_grant *grants, struct pool_total *ret_total);

#endif
