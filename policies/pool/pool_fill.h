// SPDX-License-Identifier: Apache-2.0
// Shares what a pool has left among members that want more: by priority, then by weighted max-min fairness.
#ifndef GPUSCALE_POLICIES_POOL_POOL_FILL_H
#define GPUSCALE_POLICIES_POOL_POOL_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool_grant;
struct pool_member;
struct pool_request;

#define POOL_NO_BUDGET INT64_MAX

// The rest of a pool. Either may be negative: then nothing is left. micro is POOL_NO_BUDGET without a budget.
struct pool_room {
	int64_t gpus, micro;
};

// Millionths of the currency that one replica costs per hour.
int64_t pool_replica_micro(const struct pool_member *m);
// Whether `n` more replicas of `m` fit.
bool pool_fits(const struct pool_room *room, const struct pool_member *m, int32_t n);
// Subtracts `n` replicas of `m`.
void pool_take(struct pool_room *room, const struct pool_member *m, int32_t n);

// Fills grants[].order with the indexes of the members in the order in which classes are served.
void pool_order(const struct pool_request *request, struct pool_grant *grants);
// Raises grants[i].value to at most grants[i].limit, one replica after the other, while there is room; a limit below
// the value changes nothing. Needs pool_order().
void pool_fill(const struct pool_request *request, struct pool_grant *grants, struct pool_room *room);

#endif
