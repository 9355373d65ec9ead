// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK_BYTES 512 // the first block; a small policy fits into it, and there may be 20000
#define ARENA_GROWTH_MAX  (1024 * 1024)

#ifdef __has_feature // clang; gcc defines the macro itself
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
// Functions of their own: gcc takes the const parameter of the interface for a read of fresh memory.
__attribute__((noinline)) static void poison(void *p, size_t n)
{
	__asan_poison_memory_region(p, n);
}
__attribute__((noinline)) static void unpoison(void *p, size_t n)
{
	__asan_unpoison_memory_region(p, n);
}
#else
static void poison(void *p, size_t n) {}
static void unpoison(void *p, size_t n) {}
#endif

struct arena_block {
	struct arena_block *next;
	size_t cap, used;
	alignas(max_align_t) unsigned char bytes[];
};

void arena_init(struct arena *a, size_t max_bytes)
{
	*a = (struct arena){.max_bytes = max_bytes};
}

static void free_blocks(struct arena *a)
{
	for (struct arena_block *b = a->first, *next; b; b = next) {
		next = b->next;
		unpoison(b->bytes, b->cap);
		free(b);
	}
	a->first = a->current = NULL;
	a->held_bytes = 0;
}

void arena_done(struct arena *a)
{
	free_blocks(a);
	arena_init(a, a->max_bytes);
}

void arena_reset(struct arena *a)
{
	if (a->first && a->first->next) {
		// Keeping them all would pile up blocks that a slowly growing tick always finds a little too small.
		a->next_bytes = a->used_bytes;
		free_blocks(a);
	} else if (a->first) {
		a->first->used = 0;
		poison(a->first->bytes, a->first->cap);
	}
	a->used_bytes = 0;
}

static size_t larger(size_t x, size_t y)
{
	return x > y ? x : y;
}

// A block with room for n bytes, made the current one. Blocks grow with the arena: few of them for a large one.
static struct arena_block *add_block(struct arena *a, size_t n)
{
	size_t growth = a->used_bytes < ARENA_GROWTH_MAX ? a->used_bytes : ARENA_GROWTH_MAX;
	size_t cap = larger(larger(n, ARENA_BLOCK_BYTES), larger(growth, a->next_bytes));
	if (cap > SIZE_MAX - sizeof(struct arena_block))
		return NULL;
	struct arena_block *b = malloc(sizeof *b + cap);
	if (!b)
		return NULL;
	a->next_bytes = 0;
	a->held_bytes += sizeof *b + cap;
	b->cap = cap;
	b->used = 0;
	b->next = NULL;
	poison(b->bytes, cap);
	if (a->current)
		a->current->next = b;
	else
		a->first = b;
	a->current = b;
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	const size_t align = alignof(max_align_t);
	if (size > SIZE_MAX - align)
		return NULL;
	size_t n = size ? (size + align - 1) / align * align : align;
	if (n > a->max_bytes || a->used_bytes > a->max_bytes - n)
		return NULL;
	struct arena_block *b = a->current;
	if (!b || b->cap - b->used < n)
		b = add_block(a, n);
	if (!b)
		return NULL;
	void *p = b->bytes + b->used;
	b->used += n;
	a->used_bytes += n;
	unpoison(p, size);
	return memset(p, 0, size);
}

void *arena_calloc(struct arena *a, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size)
		return NULL;
	return arena_alloc(a, n * size);
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	if (len == SIZE_MAX)
		return NULL;
	char *p = arena_alloc(a, len + 1);
	if (p && len)
		memcpy(p, s, len);
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_path_beside(struct arena *a, const char *file, const char *path)
{
	const char *slash = path[0] == '/' ? NULL : strrchr(file, '/');
	return arena_printf(a, "%.*s%s", slash ? (int)(slash + 1 - file) : 0, file, path);
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}
