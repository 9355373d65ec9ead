// SPDX-License-Identifier: Apache-2.0
#include "controller/status/state_text.h"

#include <openssl/evp.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void state_text_write(const void *bytes, size_t n, char *ret_text)
{
	EVP_EncodeBlock((unsigned char *)ret_text, bytes, (int)n);
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
