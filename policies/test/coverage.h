// SPDX-License-Identifier: Apache-2.0
// Which stages and reasons of each policy the tests have reached, and which they have not.
#ifndef GPUSCALE_POLICIES_TEST_COVERAGE_H
#define GPUSCALE_POLICIES_TEST_COVERAGE_H

#include <stddef.h>

struct buf;
struct coverage; // coverage of one policy
struct decision;
struct policy;

#define COVERAGE_POLICIES_MAX 20000

struct coverage_list {
	struct coverage **items;
	size_t n, cap;
};

// Returns the coverage of the policy with this namespace and name, which it adds to the list if necessary. `policy` is
// not kept. Returns NULL when memory is exhausted or the list contains COVERAGE_POLICIES_MAX.
struct coverage *coverage_of(struct coverage_list *list, const struct policy *policy);
void coverage_add(struct coverage *c, const struct decision *d);
// Appends a table per policy to `out`: stage, reason, number of ticks; "-" for a reason that no test reached.
void coverage_print(const struct coverage_list *list, struct buf *out);
void coverage_done(struct coverage_list *list);

#endif
