// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM           1
#define uthash_nonfatal_oom(record) abort()
#include <uthash.h>

// base/hash_table.h replaces the macro by the function that calls this one.
static bool expand(UT_hash_table *table)
{
	bool is_exhausted = false;
	HASH_EXPAND_BUCKETS(hh, table, is_exhausted);
	return !is_exhausted;
}

#include "base/alloc.h"
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

void *hash_table_get(void *table, const void *key, size_t len, size_t at)
{
	struct {
		UT_hash_handle hh;
	} * first, *r;
	memcpy(&first, table, sizeof first); // a pointer of any type
	HASH_FIND(hh, first, key, len, r);
	if (r)
		return r;
	r = must_alloc(calloc(1, at + len + sizeof(void *))); // the record may end with padding behind `at`
	memcpy((char *)r + at, key, len);
	HASH_ADD_KEYPTR(hh, first, (char *)r + at, len, r);
	memcpy(table, &first, sizeof first);
	return r;
}
