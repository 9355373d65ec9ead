// SPDX-License-Identifier: Apache-2.0
// Bump allocator: many small allocations, one release. arena_reset joins the blocks of a grown arena into one that
// contains all of them, so a steady tick allocates nothing and memory stays a small multiple of the largest tick.
// Under AddressSanitizer what was not handed out, or was reset, is poisoned.
#ifndef GPUSCALE_BASE_ARENA_H
#define GPUSCALE_BASE_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena {
	struct arena_block *first, *current;
	size_t used_bytes; // handed out since the last reset
	size_t held_bytes; // all blocks, used or not
	size_t max_bytes;  // limit on used_bytes
	size_t next_bytes; // size of the next block at least; set by arena_reset
};

void arena_init(struct arena *a, size_t max_bytes);
// The same as the value of a declaration: struct arena a = ARENA(NAMES_MAX);
#define ARENA(limit) ((struct arena){.max_bytes = (limit)})
// Frees every block.
void arena_done(struct arena *a);
// Everything handed out becomes invalid; its memory serves the next allocations.
void arena_reset(struct arena *a);
// size bytes, zeroed, aligned for any type; NULL when the limit is reached or memory is exhausted. Counted in steps of
// that alignment; 0 gives a pointer of its own too.
void *arena_alloc(struct arena *a, size_t size);
// n * size with an overflow check; NULL as arena_alloc.
void *arena_calloc(struct arena *a, size_t n, size_t size);
// NUL-terminated copy of s[0..len).
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_strdup(struct arena *a, const char *s);
// A path that the file `file` contains: `path`, relative to the folder of that file unless it is absolute.
char *arena_path_beside(struct arena *a, const char *file, const char *path);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
