// SPDX-License-Identifier: Apache-2.0
// Decodes one reply of the query API as it arrives. Keeps only the result and the token that is split between two
// pieces; exceeding a limit ends the decoding at once. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_DECODER_H
#define GPUSCALE_PROMQL_PROMQL_DECODER_H

#include <sys/queue.h>

#include "promql/promql_result.h"

struct arena;
struct promql_answer;
struct promql_decoder;
struct err;

// The memory that answers being decoded share: when it is used up, the largest of them fails.
struct promql_budget {
	size_t max_bytes, used_bytes;
	LIST_HEAD(, promql_answer) answers; // private
};

struct promql_decoder_options {
	size_t max_series;            // 0: PROMQL_SERIES_MAX
	size_t max_bytes;             // bytes of memory; 0: the limit of the arena
	const char *const *labels;    // the names to keep, NULL-terminated, must outlive the result; NULL: all
	struct promql_budget *budget; // shared with other answers; NULL: none
	int64_t clock_offset_ms;      // subtracted from the times of the reply
};

// Creates a decoder that allocates results in `a`. The arena must be empty and is the decoder's from
// promql_decoder_start until promql_decoder_done. Returns NULL when memory is exhausted.
struct promql_decoder *promql_decoder_new(struct arena *a);
// Frees the decoder, but not the arena. NULL is fine.
void promql_decoder_free(struct promql_decoder *d);
// Starts another reply. Empties the arena.
void promql_decoder_start(struct promql_decoder *d, const struct promql_decoder_options *o);
// Decodes the next bytes of a body: {"status":"success"|"error","data":...}. Returns 0, or -1 and *e: for an error
// body, the kind of its errorType (bad_data and execution: ERR_REJECTED, timeout: ERR_TIMEOUT, internal and
// unavailable: ERR_SERVER, unknown ones: ERR_REJECTED) with the server's text, which includes the position in the
// query; ERR_PROTOCOL with the place ("data.result[3].value[1]") for a body that is not from the API; ERR_LIMIT for a
// limit on one series and ERR_TOO_LARGE for a limit on the answer, both with both numbers; ERR_UNSUPPORTED for a
// native histogram; ERR_INPUT, naming the series, for a duplicate series or label. After an error, only start and free
// are permitted.
int promql_decoder_feed(struct promql_decoder *d, const char *data, size_t len, struct err *e);
// Completes the body and writes the result, which is allocated in the arena. Removes the answer from the budget, so
// that it cannot be evicted while it is read. Returns as promql_decoder_feed.
int promql_decoder_finish(struct promql_decoder *d, struct promql_result *ret_result, struct err *e);

// ---- text of a server: for one-line messages, as errors and times ----

#define PROMQL_TEXT_BYTES 320 // the longest part of a server's text in a message, with its terminator
#define PROMQL_NAME_BYTES 84  // the same for a name or a value

// Copies text[0..len) without the spaces around it to out[0..cap), as text_show does. Returns out.
const char *promql_text_show(char *out, size_t cap, const char *text, size_t len);
// The same for the first line that is not blank.
const char *promql_text_first_line(char *out, size_t cap, const char *text, size_t len);

// Fills *e with the error that the query API reports in the body of a reply, and returns -1. `type` is its errorType,
// which decides the kind (promql_decoder_feed lists them), `text` its error, the server's words, which go into the
// message cut and on one line. Both may be "", when the reply has no such member.
int promql_api_error_set(struct err *e, const char *type, const char *text);

// Reads the JSON number text[0..len), in seconds since the epoch, and sets *ret_ms to it, rounded to milliseconds. -1
// when it is not a number, or so large that a double does not represent its milliseconds; *ret_ms is then untouched.
int promql_time_parse(const char *text, size_t len, int64_t *ret_ms);

#endif
