// SPDX-License-Identifier: Apache-2.0
// The shared memory budget of all answers that are being decoded. When an answer needs more than is free, the largest
// answer is aborted, so that small answers complete however many large ones are in flight. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_BUDGET_H
#define GPUSCALE_PROMQL_PROMQL_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

// Answers up to this size are not counted: the number of requests in flight limits them.
#define PROMQL_SMALL_ANSWER_BYTES ((size_t)64 * 1024)

struct promql_share;

struct promql_budget {
	size_t max_bytes, used_bytes;
	struct promql_share *first;
};

// The share of one answer. Zeroed: empty, in no budget.
struct promql_share {
	struct promql_budget *budget; // NULL: in no budget
	struct promql_share *prev, *next;
	size_t bytes;                          // counted
	size_t lost_bytes;                     // the bytes it used when it was evicted; else 0
	void (*evict)(struct promql_share *s); // must free the memory at once and not join a budget again until reset
};

// Sets the size of the share to `bytes` and evicts the largest shares until it fits. Returns false when this share is
// the largest: the caller must free its memory and leave the budget.
bool promql_share_hold(struct promql_share *s, struct promql_budget *budget, size_t bytes);
// Removes the share from its budget.
void promql_share_leave(struct promql_share *s);

#endif
