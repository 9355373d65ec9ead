// SPDX-License-Identifier: Apache-2.0
// Text from outside: strict UTF-8, and escapes with which it fits safely into one line of a message.
#ifndef GPUSCALE_BASE_TEXT_H
#define GPUSCALE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Returns whether `text` equals one of words[0..n).
bool text_is_one_of(const char *text, const char *const *words, size_t n);

#define UTF8_REPLACEMENT "\xef\xbf\xbd" // U+FFFD, written for every byte that is not part of valid UTF-8

// Length (1..4) of the valid character at s[0..len), or 0 when the first byte starts none: overlong forms, surrogates,
// numbers above U+10FFFF and cut sequences are invalid. len 0 gives 0. RFC 3629.
size_t utf8_char_len(const char *s, size_t len);
// Writes code point `c`, which may be a surrogate, to `out`, without a terminator. Returns the number of bytes.
size_t utf8_put(uint32_t c, char out[4]);

// Returns the code point of the character s[0..n); `n` (1..4) is the result of utf8_char_len.
uint32_t text_code_point(const char *s, size_t n);

// Returns whether the code point would break the line, start a terminal escape sequence (C0, DEL, C1), be invisible, or
// reorder the text around it ("Trojan source"), or is a noncharacter, which YAML does not allow.
bool text_is_unsafe(uint32_t cp);

// Writes the visible form of the first character of s[0..len), len > 0, to `out`, without a terminator: \n \t \r, \xNN
// for other control characters and for a byte that is not valid UTF-8, \uNNNN for what else is unsafe, and the
// character itself otherwise. Returns the number of bytes written, and in *ret_taken the number of bytes of `s` that
// they stand for.
#define TEXT_CHAR_BYTES 12
size_t text_show_char(const char *s, size_t len, char out[TEXT_CHAR_BYTES], size_t *ret_taken);

// Copies s[0..len) into out[0..cap) for a message: control characters, line separators, invisible characters, direction
// overrides and bytes that are not UTF-8 become visible (\n \t \r \xNN \uNNNN), and what does not fit is cut between
// characters with "...". cap >= 8. Always terminates; returns the length.
size_t text_show(char *out, size_t cap, const char *s, size_t len);

// Returns the size of the base64 text of n bytes (RFC 4648, section 4), with its terminator. EVP_EncodeBlock() writes
// it.
#define TEXT_BASE64_BYTES(n) (((n) + 2) / 3 * 4 + 1)
// Decodes base64 text to at most `max` bytes at ret_bytes, and returns their number; 0 when it is not base64, or
// longer.
size_t text_from_base64(const char *text, void *ret_bytes, size_t max);

#endif
