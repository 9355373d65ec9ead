// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_reply.h"

#include <stdlib.h>
#include <string.h>

// The memory that a reply keeps between bodies; there are as many replies as queries were in flight at once.
#define ARENA_KEPT_BYTES ((size_t)16 * 1024)

struct promql_reply *promql_reply_new(void)
{
	struct promql_reply *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	arena_init(&r->arena, PROMQL_RANGE_BYTES_MAX);
	r->decoder = promql_decoder_new(&r->arena);
	if (!r->decoder) {
		promql_reply_free(r);
		return NULL;
	}
	return r;
}

void promql_reply_free(struct promql_reply *r)
{
	if (!r)
		return;
	promql_decoder_free(r->decoder);
	arena_done(&r->arena);
	free(r);
}

void promql_reply_start(struct promql_reply *r, size_t max_bytes, const struct promql_decoder_options *o)
{
	r->head_len = 0;
	r->bytes = 0;
	r->max_bytes = max_bytes;
	r->error.kind = ERR_NONE;
	promql_decoder_start(r->decoder, o);
}

static void keep_head(struct promql_reply *r, const char *data, size_t len)
{
	while (r->head_len == 0 && len > 0 && memchr(" \t\r\n", *data, 4)) {
		data++;
		len--;
	}
	size_t room = sizeof r->head - r->head_len, n = len < room ? len : room;
	if (n)
		memcpy(r->head + r->head_len, data, n);
	r->head_len += n;
}

bool promql_reply_is_json(const struct promql_reply *r)
{
	return r->head_len > 0 && r->head[0] == '{';
}

int promql_reply_take(struct promql_reply *r, const char *data, size_t len)
{
	if (r->error.kind != ERR_NONE)
		return -1;
	if (len > r->max_bytes - r->bytes)
		return err_set(&r->error, ERR_TOO_LARGE,
		               "the answer has %zu bytes or more; the ceiling is %zu: aggregate in the query",
		               r->bytes + len, r->max_bytes);
	r->bytes += len;
	if (r->head_len < sizeof r->head)
		keep_head(r, data, len);
	if (r->head_len > 0 && !promql_reply_is_json(r))
		return 0;
	return promql_decoder_feed(r->decoder, data, len, &r->error);
}

int promql_reply_finish(struct promql_reply *r, struct promql_result *ret_result, struct err *e)
{
	if (r->error.kind != ERR_NONE) {
		*e = r->error;
		return -1;
	}
	int rc = promql_decoder_finish(r->decoder, ret_result, e);
	promql_decoder_detach(r->decoder);
	return rc;
}

void promql_reply_rest(struct promql_reply *r)
{
	promql_decoder_start(r->decoder, &(struct promql_decoder_options){0});
	if (r->arena.held_bytes > ARENA_KEPT_BYTES)
		arena_done(&r->arena);
}
