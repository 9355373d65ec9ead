// SPDX-License-Identifier: Apache-2.0
#include "controller/status/state_text.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void state_text_write(const void *bytes, size_t n, char *ret_text)
{
	const unsigned char *b = bytes;
	for (size_t i = 0; i < n; i += 3) {
		size_t have = n - i < 3 ? n - i : 3;
		unsigned v =
		        (unsigned)b[i] << 16 | (have > 1 ? (unsigned)b[i + 1] << 8 : 0) | (have > 2 ? b[i + 2] : 0);
		*ret_text++ = digits[v >> 18];
		*ret_text++ = digits[v >> 12 & 63];
		*ret_text++ = have > 1 ? digits[v >> 6 & 63] : '=';
		*ret_text++ = have > 2 ? digits[v & 63] : '=';
	}
	*ret_text = '\0';
}

size_t state_text_read(const char *text, void *ret_bytes, size_t max)
{
	unsigned char *out = ret_bytes;
	size_t len = strlen(text), padding = len > 0 && text[len - 1] == '=' ? 1 : 0;
	padding += padding && len > 1 && text[len - 2] == '=';
	if (len % 4 != 0 || len / 4 * 3 - padding > max)
		return 0;
	unsigned v = 0;
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		const char *digit = i < len - padding ? strchr(digits, text[i]) : digits;
		if (!digit)
			return 0;
		v = v << 6 | (unsigned)(digit - digits);
		if (i % 4 != 3)
			continue;
		for (int shift = 16; shift >= 0 && n < len / 4 * 3 - padding; shift -= 8)
			out[n++] = (unsigned char)(v >> shift & 255);
		v = 0;
	}
	return n;
}
