// SPDX-License-Identifier: Apache-2.0
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int alloc_reserve(void *items, size_t n, size_t *cap, size_t size, size_t first)
{
	void *array;
	if (n < *cap)
		return 0;
	size_t more = *cap ? 2 * *cap : first;
	memcpy(&array, items, sizeof array); // a pointer of any type
	void *grown = more <= SIZE_MAX / size ? realloc(array, more * size) : NULL;
	if (!grown)
		return -1;
	memcpy(items, &grown, sizeof grown);
	*cap = more;
	return 0;
}
