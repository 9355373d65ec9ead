// SPDX-License-Identifier: Apache-2.0
#include "test/support/promql_short.h"

#include <string.h>

#include "base/err.h"
#include "promql/promql_decoder.h"

int promql_query(struct promql *p, const char *query, int64_t time_ms, promql_done_fn *done, void *arg, struct err *e)
{
	return promql_ask(p, &(struct promql_question){.query = query, .time_ms = time_ms}, done, arg, e);
}

int promql_decode(struct arena *a, const char *body, size_t len, struct promql_result *ret_result, struct err *e)
{
	*ret_result = (struct promql_result){.type = PROMQL_VECTOR};
	struct promql_decoder *d = promql_decoder_new(a);
	if (!d)
		return err_set(e, ERR_INTERNAL, "out of memory");
	promql_decoder_start(d, &(struct promql_decoder_options){0});
	int rc = promql_decoder_feed(d, body, len, e) < 0 ? -1 : promql_decoder_finish(d, ret_result, e);
	promql_decoder_free(d);
	return rc;
}
