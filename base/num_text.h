// SPDX-License-Identifier: Apache-2.0
// Private to num*.c: quotes input text in error messages.
#ifndef GPUSCALE_BASE_NUM_TEXT_H
#define GPUSCALE_BASE_NUM_TEXT_H

#include <stddef.h>

struct err;

#define NUM_SHOWN_BYTES 64

// Writes s[0..len) to `out` (NUM_SHOWN_BYTES) in quotes, escaped and truncated by text_show. Returns `out`.
const char *num_shown(char *out, const char *s, size_t len);
// 0, or -1 with ERR_LIMIT or ERR_INPUT when len is above NUM_INPUT_BYTES_MAX or 0. `what` names it ("a duration"),
// `fix` is an example.
int num_check_len(const char *s, size_t len, const char *what, const char *fix, struct err *e);

#endif
