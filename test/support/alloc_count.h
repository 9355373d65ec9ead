// SPDX-License-Identifier: Apache-2.0
// Counts the heap allocations of a test program: include in exactly one .c file. Works with glibc and without
// sanitizers, which bring their own malloc; elsewhere ALLOC_COUNT_WORKS is 0 and a test should skip().
#ifndef GPUSCALE_TEST_SUPPORT_ALLOC_COUNT_H
#define GPUSCALE_TEST_SUPPORT_ALLOC_COUNT_H

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
#define ALLOC_COUNT_WORKS 1

// glibc exports its allocator under these names for programs that wrap it.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

// malloc, calloc and realloc so far, by the whole process.
static size_t alloc_count;

void *malloc(size_t size)
{
	alloc_count++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	alloc_count++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	alloc_count++;
	return __libc_realloc(p, size);
}
#else
#define ALLOC_COUNT_WORKS 0
static size_t alloc_count;
#endif

#endif
