// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

// base/hash_table.h replaces the macro by the function that calls this one.
static bool expand(UT_hash_table *table)
{
	bool is_exhausted = false;
	HASH_EXPAND_BUCKETS(hh, table, is_exhausted);
	return !is_exhausted;
}

#include "base/hash_table.h"

unsigned hash_table_key(const void *key, size_t len)
{
	unsigned hash;
	HASH_JEN(key, len, hash);
	return hash;
}

bool hash_table_expand(UT_hash_table *table)
{
	return expand(table);
}
