// SPDX-License-Identifier: Apache-2.0
#include "policies/pool/pool_reason.h"

// clang-format off
static const struct pool_reason_info table[] = {
	[POOL_GRANTED]          = {"Granted",         "pool {pool} uses {used} of {gpus} GPUs"},
	[POOL_AT_MIN]           = {"MinReplicas",     "minReplicas takes precedence"},
	[POOL_AT_MAX]           = {"MaxReplicas",     "maxReplicas takes precedence"},
	[POOL_LIMITED]          = {"PoolLimited",     "pool {pool} uses {used} of {gpus} GPUs"},
	[POOL_BUDGET_LIMITED]   = {"BudgetLimited",   "the budget of pool {pool} is used up at {used} of {gpus} GPUs"},
	[POOL_RATIO_LIMITED]    = {"RatioLimited",    "the ratio to another member of pool {pool} allows no other number yet"},
	[POOL_WAITING]          = {"WaitingForGPUs",  "its share is {share}; other members of pool {pool} must scale down first"},
	[POOL_KEPT]             = {"NoMetrics",       "a member without metrics keeps what it has"},
	[POOL_MEMBER_LIMITED]   = {"MemberLimited",   "pool {pool} allows this member at most {most} replicas"},
	[POOL_MINIMUMS_EXCEED]  = {"MinimumsExceed",  "the guaranteed minimums of pool {pool} need {minimums} GPUs, the cap is {gpus}: lower a maxMinReplicas or raise the cap"},
	[POOL_HELD]             = {"PoolHeld",        "pool {pool} is held"},
};
// clang-format on
_Static_assert(sizeof table / sizeof table[0] == POOL_REASON__COUNT, "one row per reason");

const struct pool_reason_info *pool_reason_info(enum pool_reason reason)
{
	return &table[reason];
}
