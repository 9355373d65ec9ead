// SPDX-License-Identifier: Apache-2.0
// The body of one reply, as it arrives: passes JSON to the decoder, and keeps the start of any body for messages.
// Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_REPLY_H
#define GPUSCALE_PROMQL_PROMQL_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "promql/promql_decoder.h"
#include "promql/promql_text.h"

struct promql_reply {
	struct promql_reply *next_free;
	struct arena arena; // memory for the result
	struct promql_decoder *decoder;
	char head[PROMQL_TEXT_BYTES / 2]; // from the first byte that is not whitespace
	size_t head_len;
	size_t bytes, max_bytes; // size of the body
	struct err error;        // why the body is invalid or too large
};

// Returns NULL when memory is exhausted.
struct promql_reply *promql_reply_new(void);
void promql_reply_free(struct promql_reply *r); // NULL is fine
// Starts another body of at most max_bytes.
void promql_reply_start(struct promql_reply *r, size_t max_bytes, const struct promql_decoder_options *o);
// Processes the next bytes. Returns 0, or -1 when no more are accepted; r->error then has the reason.
int promql_reply_take(struct promql_reply *r, const char *data, size_t len);
bool promql_reply_is_json(const struct promql_reply *r);
// Completes the body. The result is valid until start, rest or free.
int promql_reply_finish(struct promql_reply *r, struct promql_result *ret_result, struct err *e);
// Releases the memory of a large body, until the next start.
void promql_reply_rest(struct promql_reply *r);

#endif
