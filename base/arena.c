// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK_BYTES 4096

struct arena_block {
	struct arena_block *next;
	size_t cap, used;
	alignas(max_align_t) unsigned char bytes[];
};

void arena_init(struct arena *a, size_t max_bytes)
{
	*a = (struct arena){.max_bytes = max_bytes};
}

void arena_done(struct arena *a)
{
	for (struct arena_block *b = a->first, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	arena_init(a, a->max_bytes);
}

void arena_reset(struct arena *a)
{
	for (struct arena_block *b = a->first; b; b = b->next)
		b->used = 0;
	a->current = a->first;
	a->used_bytes = 0;
}

void *arena_alloc(struct arena *a, size_t size)
{
	const size_t align = alignof(max_align_t);
	if (size > SIZE_MAX - align)
		return NULL;
	size_t n = (size + align - 1) / align * align;
	if (n == 0)
		n = align;
	if (n > a->max_bytes || a->used_bytes > a->max_bytes - n)
		return NULL;
	while (a->current && a->current->cap - a->current->used < n && a->current->next)
		a->current = a->current->next;
	if (!a->current || a->current->cap - a->current->used < n) {
		size_t cap = n > ARENA_BLOCK_BYTES ? n : ARENA_BLOCK_BYTES;
		if (a->used_bytes > cap) // blocks grow with the arena: few of them for a large one
			cap = a->used_bytes < 1024 * 1024 ? a->used_bytes : 1024 * 1024;
		if (cap < n)
			cap = n;
		struct arena_block *b = malloc(sizeof *b + cap);
		if (!b)
			return NULL;
		b->cap = cap;
		b->used = 0;
		b->next = NULL;
		if (a->current)
			a->current->next = b;
		else
			a->first = b;
		a->current = b;
	}
	void *p = a->current->bytes + a->current->used;
	a->current->used += n;
	a->used_bytes += n;
	return memset(p, 0, n);
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
