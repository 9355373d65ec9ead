// SPDX-License-Identifier: Apache-2.0
#include "base/backoff.h"

#include <event2/util.h>

int64_t backoff_random_ms(int64_t below)
{
	uint32_t bits = 0;
	evutil_secure_rng_get_bytes(&bits, sizeof bits);
	return below > 0 ? (int64_t)(bits % (uint64_t)below) : 0;
}

int64_t backoff_ms(const struct backoff *b, int failures, int64_t retry_after_ms)
{
	int64_t step = b->first_ms;
	for (int i = 1; i < failures && step < b->max_ms; i++)
		step *= 2;
	step = step < b->max_ms ? step : b->max_ms;
	int64_t wait = step / 2 + backoff_random_ms(step / 2 + 1);
	if (retry_after_ms <= 0)
		return wait;
	int64_t asked = retry_after_ms < b->max_retry_after_ms ? retry_after_ms : b->max_retry_after_ms;
	return wait > asked ? wait : asked + backoff_random_ms(asked / 10 + 1);
}
