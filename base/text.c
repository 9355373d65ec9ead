// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

uint32_t text_code_point(const char *s, size_t n)
{
	static const unsigned char first_byte_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	assert(n >= 1 && n <= 4);
	uint32_t cp = (unsigned char)s[0] & first_byte_bits[n];
	for (size_t i = 1; i < n; i++)
		cp = cp << 6 | ((unsigned char)s[i] & 0x3fu);
	return cp;
}

bool text_is_unsafe(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029 || cp == 0xfeff ||
	       (cp & 0xfffe) == 0xfffe || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x202a && cp <= 0x202e) ||
	       (cp >= 0x2066 && cp <= 0x2069);
}

size_t text_show(char *out, size_t cap, const char *s, size_t len)
{
	assert(cap >= 8);
	size_t used = 0, cut = 0; // cut: the last place between two pieces where "..." still fits
	for (size_t i = 0; i < len;) {
		char piece[12];
		size_t n_piece, n = utf8_char_len(s + i, len - i);
		uint32_t cp = n ? text_code_point(s + i, n) : (unsigned char)s[i];
		if (n > 0 && !text_is_unsafe(cp)) {
			memcpy(piece, s + i, n);
			n_piece = n;
		} else if (cp == '\n' || cp == '\t' || cp == '\r') {
			piece[0] = '\\';
			piece[1] = cp == '\n' ? 'n' : cp == '\t' ? 't' : 'r';
			n_piece = 2;
		} else {
			n_piece = (size_t)snprintf(piece, sizeof piece, n > 1 ? "\\u%04x" : "\\x%02x", (unsigned)cp);
		}
		if (used + n_piece > cap - 1) {
			memcpy(out + cut, "...", 3);
			used = cut + 3;
			break;
		}
		memcpy(out + used, piece, n_piece);
		used += n_piece;
		if (used + 3 <= cap - 1)
			cut = used;
		i += n ? n : 1;
	}
	out[used] = '\0';
	return used;
}
