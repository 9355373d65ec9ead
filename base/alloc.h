// SPDX-License-Identifier: Apache-2.0
// Memory of the heap: objects with their texts, arrays that grow by doubling, and memory that must exist.
#ifndef GPUSCALE_BASE_ALLOC_H
#define GPUSCALE_BASE_ALLOC_H

#include <stddef.h>
#include <stdlib.h>

struct err;

// Returns `allocated`, the result of malloc and the like. Ends the process when it is NULL: for callbacks of the event
// loop, which have no caller to return an error to and would lose what they were called with, and for what the
// controller creates at its start. The supervisor restarts the process. Every other function returns ERR_INTERNAL "out
// of memory" (CONTRIBUTING, "Out of memory").
static inline void *must_alloc(void *allocated)
{
	if (!allocated)
		abort();
	return allocated;
}

// As err_calloc(), with copies of the n texts *texts[i] behind the `size` bytes. Sets each *texts[i] to its copy; NULL
// stays NULL.
void *alloc_with_texts(size_t size, const char **const *texts, size_t n, struct err *e);

// Makes room for one more element behind the `n` elements of an array from malloc. `items` is the address of the
// caller's pointer to it (NULL: none yet), `size` the bytes of an element, `first` the capacity of a new array. Updates
// the pointer and *cap when the array is full. Returns 0, or -1 when memory is exhausted; the array is then unchanged.
int alloc_reserve(void *items, size_t n, size_t *cap, size_t size, size_t first);

// As alloc_reserve(). Ends the process when memory is exhausted.
static inline void must_reserve(void *items, size_t n, size_t *cap, size_t size, size_t first)
{
	if (alloc_reserve(items, n, cap, size, first) < 0)
		abort();
}

// Overwrites and frees a secret text. NULL is fine.
void alloc_wipe(char *text);

#endif
