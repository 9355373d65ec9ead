// SPDX-License-Identifier: Apache-2.0
// Delays between attempts, spread at random so that many clients do not return at the same moment.
#ifndef GPUSCALE_BASE_BACKOFF_H
#define GPUSCALE_BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
	int64_t first_ms;           // delay after the first failure
	int64_t max_ms;             // the delay doubles up to this
	int64_t max_retry_after_ms; // a server's Retry-After counts up to this
};

// Returns the delay in ms before the next attempt after `failures` failures in a row (at least 1): between half of the
// step and the whole, and not before `retry_after_ms` (0: the server requested none) plus up to a tenth of it.
int64_t backoff_ms(const struct backoff *b, int failures, int64_t retry_after_ms);
// Returns a uniform random number in [0, below); 0 when below is 0 or less.
int64_t backoff_random_ms(int64_t below);

#endif
