// SPDX-License-Identifier: Apache-2.0
// Converts text of a server: for one-line messages, to errors and to times. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_TEXT_H
#define GPUSCALE_PROMQL_PROMQL_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct err;

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
