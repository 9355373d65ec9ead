// SPDX-License-Identifier: Apache-2.0
// Renders the grant of a member of a pool as a sentence.
#ifndef GPUSCALE_POLICIES_EXPLAIN_EXPLAIN_POOL_H
#define GPUSCALE_POLICIES_EXPLAIN_EXPLAIN_POOL_H

#include <stdint.h>

struct buf;
struct pool_grant;
struct pool_total;

// Appends "pool h100 uses 32 of 32 GPUs". `gpus` is the cap.
void explain_pool_reason(struct buf *out, const char *pool_name, int64_t gpus, const struct pool_grant *grant,
                         const struct pool_total *total);
// Appends "requested 12, granted 8: pool h100 uses 32 of 32 GPUs". `asked` is the wish of the member, `gpus` the cap.
void explain_pool_grant(struct buf *out, const char *pool_name, int64_t gpus, int32_t asked,
                        const struct pool_grant *grant, const struct pool_total *total);

#endif
