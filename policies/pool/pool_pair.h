// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a ratio between two members of a pool.
#ifndef GPUSCALE_POLICIES_POOL_POOL_PAIR_H
#define GPUSCALE_POLICIES_POOL_POOL_PAIR_H

#include <stdint.h>

struct pool_ratio;

// The fewest and the most replicas of the one that `to` replicas of the other allow, and the reverse. At most
// POOL_REPLICAS_MAX.
int32_t pool_pair_of_min(const struct pool_ratio *r, int64_t to);
int32_t pool_pair_of_max(const struct pool_ratio *r, int64_t to);
int32_t pool_pair_to_min(const struct pool_ratio *r, int64_t of);
int32_t pool_pair_to_max(const struct pool_ratio *r, int64_t of);

#endif
