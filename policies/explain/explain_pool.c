// SPDX-License-Identifier: Apache-2.0
#include "policies/explain/explain_pool.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "policies/pool/pool_allocate.h"
#include "policies/pool/pool_grant.h"
#include "policies/pool/pool_reason.h"

enum word { WORD_POOL, WORD_USED, WORD_GPUS, WORD_SHARE, WORD_MOST, WORD_MINIMUMS, WORD__COUNT };
static const char *const words[] = {"{pool}", "{used}", "{gpus}", "{share}", "{most}", "{minimums}"};
_Static_assert(sizeof words / sizeof words[0] == WORD__COUNT, "one name per word");

void explain_pool_reason(struct buf *out, const char *pool_name, int64_t gpus, const struct pool_grant *grant,
                         const struct pool_total *total)
{
	const int64_t numbers[WORD__COUNT] = {[WORD_USED] = total->used_gpus,
	                                      [WORD_GPUS] = gpus,
	                                      [WORD_SHARE] = grant->share,
	                                      [WORD_MOST] = grant->most,
	                                      [WORD_MINIMUMS] = total->minimum_gpus};
	for (const char *s = pool_reason_info(grant->reason)->sentence; *s;) {
		size_t w = 0;
		while (w < WORD__COUNT && strncmp(s, words[w], strlen(words[w])) != 0)
			w++;
		if (w == WORD__COUNT) {
			buf_putc(out, *s++);
			continue;
		}
		if (w == WORD_POOL)
			buf_puts(out, pool_name);
		else
			buf_printf(out, "%" PRId64, numbers[w]);
		s += strlen(words[w]);
	}
}

void explain_pool_grant(struct buf *out, const char *pool_name, int64_t gpus, int32_t asked,
                        const struct pool_grant *grant, const struct pool_total *total)
{
	buf_printf(out, "requested %" PRId32 ", granted %" PRId32 ": ", asked, grant->replicas);
	explain_pool_reason(out, pool_name, gpus, grant, total);
}
