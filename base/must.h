// SPDX-License-Identifier: Apache-2.0
// Memory for callbacks of the event loop, which have no caller to return an error to, and for what the controller
// creates at its start. Every other function returns ERR_INTERNAL "out of memory" (CONTRIBUTING, "Out of memory").
#ifndef GPUSCALE_BASE_MUST_H
#define GPUSCALE_BASE_MUST_H

#include <stdlib.h>

// Returns `allocated`, the result of malloc and the like. Ends the process when it is NULL: without the memory, the
// callback would lose what it was called with. The supervisor restarts the process.
static inline void *must_alloc(void *allocated)
{
	if (!allocated)
		abort();
	return allocated;
}

#endif
