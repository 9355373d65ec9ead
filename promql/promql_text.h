// SPDX-License-Identifier: Apache-2.0
// Converts text of a server for one-line messages. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_TEXT_H
#define GPUSCALE_PROMQL_PROMQL_TEXT_H

#include <stddef.h>

#define PROMQL_TEXT_BYTES 320 // the longest part of a server's text in a message, with its terminator
#define PROMQL_NAME_BYTES 84  // the same for a name or a value

// Copies text[0..len) without the spaces around it to out[0..cap), as text_show does. Returns out.
const char *promql_text_show(char *out, size_t cap, const char *text, size_t len);
// The same for the first line that is not blank.
const char *promql_text_first_line(char *out, size_t cap, const char *text, size_t len);

#endif
