// SPDX-License-Identifier: Apache-2.0
// The grant of one member of a pool.
#ifndef GPUSCALE_POLICIES_POOL_POOL_GRANT_H
#define GPUSCALE_POLICIES_POOL_POOL_GRANT_H

#include <stdint.h>

#include "policies/pool/pool_reason.h"

struct pool_grant {
	int32_t replicas; // scale the target to this now
	int32_t share;    // what it would be once every PATCH has been carried out
	int32_t most;     // limit of the pool for the member
	enum pool_reason reason;
	// for the allocator only
	int32_t value, limit, order, heap;
};

#endif
