// SPDX-License-Identifier: Apache-2.0
// Whether this program runs under valgrind, which is some thirty times slower, and has limits and a malloc of its own.
#ifndef GPUSCALE_TEST_SUPPORT_ON_VALGRIND_H
#define GPUSCALE_TEST_SUPPORT_ON_VALGRIND_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool on_valgrind(void)
{
	const char *preloaded = getenv("LD_PRELOAD"); // valgrind's replacements of malloc and strlen come this way
	return preloaded && strstr(preloaded, "vgpreload");
}

#endif
