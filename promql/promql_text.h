// SPDX-License-Identifier: Apache-2.0
// Text a server sent, made fit for a one-line message: no control characters, cut to size. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_TEXT_H
#define GPUSCALE_PROMQL_PROMQL_TEXT_H

#include <stddef.h>

#define PROMQL_TEXT_BYTES 320 // longest piece of a server's text in one of our messages, with its terminator

// Copies text[0..len) to out: runs of blanks and control characters become one blank, leading and trailing ones go,
// invalid UTF-8 becomes '?', and "..." ends what had to be cut. Returns out.
const char *promql_text_clean(char out[static PROMQL_TEXT_BYTES], const char *text, size_t len);
// The same for the first line that is not blank.
const char *promql_text_first_line(char out[static PROMQL_TEXT_BYTES], const char *text, size_t len);

#endif
