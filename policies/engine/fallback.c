// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/fallback.h"

#include "policies/engine/number.h"
#include "policies/engine/policy.h"

int32_t fallback_replicas(const struct policy_fallback *fallback, int32_t current)
{
	int32_t n = fallback->replicas;
	switch (fallback->behavior) {
	case FALLBACK_CURRENT:
		n = current;
		break;
	case FALLBACK_CURRENT_IF_HIGHER:
		n = i32_max(n, current);
		break;
	case FALLBACK_CURRENT_IF_LOWER:
		n = i32_min(n, current);
		break;
	default:
		break;
	}
	return i32_max(n, 1);
}
