// SPDX-License-Identifier: Apache-2.0
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

void *alloc_with_texts(size_t size, const char **const *texts, size_t n, struct err *e)
{
	size_t bytes = size;
	for (size_t i = 0; i < n; i++)
		bytes += *texts[i] ? strlen(*texts[i]) + 1 : 0;
	char *object = err_calloc(bytes, e), *at = object ? object + size : NULL;
	for (size_t i = 0; object && i < n; i++) {
		if (*texts[i]) {
			*texts[i] = memcpy(at, *texts[i], strlen(*texts[i]) + 1);
			at += strlen(at) + 1;
		}
	}
	return object;
}

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

void alloc_wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}
