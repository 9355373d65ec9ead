// SPDX-License-Identifier: Apache-2.0
// Text from outside made safe to stand inside one line of a message.
#ifndef GPUSCALE_BASE_TEXT_H
#define GPUSCALE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The code point of the character s[0..n), n as utf8_char_len gave it (1..4).
uint32_t text_code_point(const char *s, size_t n);

// Would it break the line, start an escape sequence of a terminal (C0, DEL, C1), hide itself, or reorder what stands
// around it ("Trojan source")? Noncharacters, too: YAML has none.
bool text_is_unsafe(uint32_t cp);

// Copies s[0..len) into out[0..cap) for a message: control characters, line separators, invisible characters, direction
// overrides and bytes that are not UTF-8 become visible (\n \t \r \xNN \uNNNN), and what does not fit is cut between
// characters with "...". cap >= 8. Always terminates; returns the length.
size_t text_show(char *out, size_t cap, const char *s, size_t len);

#endif
