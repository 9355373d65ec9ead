// SPDX-License-Identifier: Apache-2.0
// The record of a pool's spending in the status of its object: the next process continues it.
#ifndef GPUSCALE_CONTROLLER_POOL_POOL_SPENDING_H
#define GPUSCALE_CONTROLLER_POOL_POOL_SPENDING_H

#include <stdbool.h>
#include <stddef.h>

struct pool_ledger;

// Reads status.spending of a GPUPool in JSON. Returns whether there is one; an invalid one counts as none.
bool pool_spending_read(const char *json, size_t len, struct pool_ledger *ret);

#endif
