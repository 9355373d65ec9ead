// SPDX-License-Identifier: Apache-2.0
// Counts the heap allocations of a test program: include in exactly one .c file. Works with glibc; sanitizers and
// valgrind bring their own malloc, so a test starts with `if (!alloc_count_works()) skip();`.
#ifndef GPUSCALE_TEST_SUPPORT_ALLOC_COUNT_H
#define GPUSCALE_TEST_SUPPORT_ALLOC_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ALLOC_COUNT_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOC_COUNT_SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(ALLOC_COUNT_SANITIZED)
// glibc exports its allocator under these names for programs that wrap it.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

// malloc, calloc and realloc so far, by the whole process.
static volatile size_t alloc_count; // volatile: the compiler takes it that malloc changes nothing one can see

// Never inlined: valgrind puts its own in place of these, and alloc_count_works() has to see that.
#define ALLOC_COUNT_WRAPPER __attribute__((noinline))

ALLOC_COUNT_WRAPPER void *malloc(size_t size)
{
	alloc_count++;
	return __libc_malloc(size);
}

ALLOC_COUNT_WRAPPER void *calloc(size_t n, size_t size)
{
	alloc_count++;
	return __libc_calloc(n, size);
}

ALLOC_COUNT_WRAPPER void *realloc(void *p, size_t size)
{
	alloc_count++;
	return __libc_realloc(p, size);
}
#else
static volatile size_t alloc_count; // volatile: the compiler takes it that malloc changes nothing one can see
#endif

static inline bool alloc_count_works(void)
{
	size_t before = alloc_count;
	void *volatile p = malloc(1); // or the compiler leaves the pair out
	free(p);
	return alloc_count != before;
}

#endif
