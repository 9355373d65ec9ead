// SPDX-License-Identifier: Apache-2.0
// Which stages and reasons of each policy the tests have reached, and which the policy has besides.
#ifndef GPUSCALE_SCENARIO_COVERAGE_H
#define GPUSCALE_SCENARIO_COVERAGE_H

#include <stddef.h>

struct buf;
struct coverage; // of one policy
struct decision;
struct policy;

#define COVERAGE_POLICIES_MAX 20000

struct coverage_list {
	struct coverage **items;
	size_t n, cap;
};

// The coverage of the policy (by namespace and name), made if there is none yet. policy is not kept. NULL when memory
// ends or there are COVERAGE_POLICIES_MAX.
struct coverage *coverage_of(struct coverage_list *list, const struct policy *policy);
void coverage_add(struct coverage *c, const struct decision *d);
// A table per policy: stage, reason, at how many ticks; "-" for what was not reached.
void coverage_print(const struct coverage_list *list, struct buf *out);
void coverage_done(struct coverage_list *list);

#endif
