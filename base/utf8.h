// SPDX-License-Identifier: Apache-2.0
// Strict UTF-8 validation, for code that writes bytes from outside to JSON, logs or an exposition.
#ifndef GPUSCALE_BASE_UTF8_H
#define GPUSCALE_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" // U+FFFD, written for every byte that is not part of valid UTF-8

// Length (1..4) of the valid character at s[0..len), or 0 when the first byte starts none: overlong forms, surrogates,
// numbers above U+10FFFF and cut sequences are invalid. len 0 gives 0. RFC 3629.
size_t utf8_char_len(const char *s, size_t len);
// Writes code point `c`, which may be a surrogate, to `out`, without a terminator. Returns the number of bytes.
size_t utf8_put(uint32_t c, char out[4]);

#endif
