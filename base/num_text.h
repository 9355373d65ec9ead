// SPDX-License-Identifier: Apache-2.0
// Internal to num*.c: how foreign text is shown in an error.
#ifndef GPUSCALE_BASE_NUM_TEXT_H
#define GPUSCALE_BASE_NUM_TEXT_H

#include <stddef.h>

struct err;

#define NUM_SHOWN_BYTES 64

// Writes s[0..len) quoted into out (NUM_SHOWN_BYTES), made harmless and cut by text_show. Returns out.
const char *num_shown(char *out, const char *s, size_t len);
// 0, or -1 with ERR_LIMIT or ERR_INPUT when len is above NUM_INPUT_BYTES_MAX or 0. `what` names it ("a duration"),
// `fix` is an example.
int num_check_len(const char *s, size_t len, const char *what, const char *fix, struct err *e);

#endif
