// SPDX-License-Identifier: Apache-2.0
// Memory of the heap: objects with their texts, and arrays that grow by doubling.
#ifndef GPUSCALE_BASE_ALLOC_H
#define GPUSCALE_BASE_ALLOC_H

#include <stddef.h>

struct err;

// As err_calloc(), with copies of the n texts *texts[i] behind the `size` bytes. Sets each *texts[i] to its copy; NULL
// stays NULL.
void *alloc_with_texts(size_t size, const char **const *texts, size_t n, struct err *e);

// Makes room for one more element behind the `n` elements of an array from malloc. `items` is the address of the
// caller's pointer to it (NULL: none yet), `size` the bytes of an element, `first` the capacity of a new array. Updates
// the pointer and *cap when the array is full. Returns 0, or -1 when memory is exhausted; the array is then unchanged.
int alloc_reserve(void *items, size_t n, size_t *cap, size_t size, size_t first);

#endif
