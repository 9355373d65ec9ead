// SPDX-License-Identifier: Apache-2.0
#include <uthash.h>

// base/hash_table.h replaces the macro by the function that calls this one.
static void expand(UT_hash_table *table)
{
	HASH_EXPAND_BUCKETS(hh, table, oomed);
}

#include "base/hash_table.h"

unsigned hash_table_key(const void *key, size_t len)
{
	unsigned hash;
	HASH_JEN(key, len, hash);
	return hash;
}

void hash_table_expand(UT_hash_table *table)
{
	expand(table);
}
