// SPDX-License-Identifier: Apache-2.0
// The hash tables of uthash. What does not depend on the type of the elements is called here instead of being expanded
// at each use, which makes the programs smaller by tens of kilobytes. Include this header instead of <uthash.h>.
#ifndef GPUSCALE_BASE_HASH_TABLE_H
#define GPUSCALE_BASE_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <uthash.h>

// Returns the hash of `len` bytes at `key`: HASH_JEN of uthash.
unsigned hash_table_key(const void *key, size_t len);
// Returns the record whose key is key[0..len), from a table whose records start with their handle, hh: `table` is the
// address of the caller's pointer to the first record. When there is none, adds one, zeroed but for the key, which
// starts at byte `at`, the offset of its last member, and gets a NUL. Aborts when memory is exhausted (base/alloc.h).
void *hash_table_get(void *table, const void *key, size_t len, size_t at);
// Doubles the buckets of the table, as uthash does. Returns false when memory is exhausted.
bool hash_table_expand(UT_hash_table *table);

#undef HASH_FUNCTION
#define HASH_FUNCTION(key, len, hashv) ((hashv) = hash_table_key(key, len))
#undef HASH_EXPAND_BUCKETS
#define HASH_EXPAND_BUCKETS(hh, table, oomed)                                                                          \
	do {                                                                                                           \
		if (!hash_table_expand(table))                                                                         \
			HASH_RECORD_OOM(oomed);                                                                        \
	} while (0)

#endif
