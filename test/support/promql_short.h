// SPDX-License-Identifier: Apache-2.0
// Short forms for tests: a query without options, and an answer that is there whole.
#ifndef GPUSCALE_TEST_SUPPORT_PROMQL_SHORT_H
#define GPUSCALE_TEST_SUPPORT_PROMQL_SHORT_H

#include <stddef.h>
#include <stdint.h>

#include "promql/promql.h"

struct arena;
struct err;

// Sends an instant query at time_ms (0: the server's now). Returns as promql_ask.
int promql_query(struct promql *p, const char *query, int64_t time_ms, promql_done_fn *done, void *arg, struct err *e);
// Decodes a complete reply body. Allocates everything in `a`. Returns as promql_decoder_feed.
int promql_decode(struct arena *a, const char *body, size_t len, struct promql_result *ret_result, struct err *e);

#endif
