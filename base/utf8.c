// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

size_t utf8_char_len(const char *s, size_t len)
{
	if (len == 0)
		return 0;
	unsigned char c = (unsigned char)s[0];
	if (c < 0x80)
		return 1;
	// The first continuation byte has a narrower range where the general one would allow overlong forms,
	// surrogates or numbers past the end.
	unsigned char low = 0x80, high = 0xbf;
	size_t n;
	if (c >= 0xc2 && c <= 0xdf) {
		n = 2;
	} else if (c >= 0xe0 && c <= 0xef) {
		n = 3;
		low = c == 0xe0 ? 0xa0 : 0x80;
		high = c == 0xed ? 0x9f : 0xbf;
	} else if (c >= 0xf0 && c <= 0xf4) {
		n = 4;
		low = c == 0xf0 ? 0x90 : 0x80;
		high = c == 0xf4 ? 0x8f : 0xbf;
	} else {
		return 0;
	}
	if (len < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		unsigned char d = (unsigned char)s[i];
		if (d < low || d > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return n;
}

size_t utf8_put(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3F));
	static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
	out[0] = (char)(lead[n] | c);
	return n;
}
