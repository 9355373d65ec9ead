// SPDX-License-Identifier: Apache-2.0
// One table of reasons of a grant: name and sentence.
#ifndef GPUSCALE_POLICIES_POOL_POOL_REASON_H
#define GPUSCALE_POLICIES_POOL_POOL_REASON_H

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

const struct pool_reason_info *pool_reason_info(enum pool_reason reason);

#endif
