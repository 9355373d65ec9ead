// SPDX-License-Identifier: Apache-2.0
// The cost of the replicas of a policy per hour.
#ifndef GPUSCALE_POLICIES_PRICE_POLICY_COST_H
#define GPUSCALE_POLICIES_PRICE_POLICY_COST_H

#include <stdint.h>

struct price_book;

enum price_basis {
	PRICE_NONE,    // no model is given, or the book has no price for it
	PRICE_ASSUMED, // assumedPerGPUHour of the book
	PRICE_LISTED,
	PRICE_BASIS__COUNT
};
extern const char *const price_basis_names[]; // "none", "assumed", "listed"

// Millionths of the currency per hour for one GPU of `model`, a short name of the book or a modelName; 0 for
// PRICE_NONE, which also a NULL book and an empty model have.
int64_t policy_gpu_micro(const struct price_book *book, const char *model, enum price_basis *ret_basis);

#endif
