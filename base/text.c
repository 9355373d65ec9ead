// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <assert.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

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
	static const struct {
		uint32_t first, last;
	} unsafe[] = {
	        {0, 0x1f},         // C0
	        {0x7f, 0x9f},      // DEL, C1
	        {0xad, 0xad},      // soft hyphen
	        {0x61c, 0x61c},    // Arabic letter mark
	        {0x180e, 0x180e},  // Mongolian vowel separator
	        {0x200b, 0x200f},  // zero width, direction marks
	        {0x2028, 0x202e},  // separators of lines and paragraphs, direction embeddings and overrides
	        {0x2060, 0x206f},  // invisible operators, direction isolates
	        {0xfeff, 0xfeff},  // byte order mark
	        {0xfff9, 0xfffb},  // interlinear annotations
	        {0xe0000, 0xe007f} // tags
	};
	if (cp > 0x1f && cp < 0x7f)
		return false;
	for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++)
		if (cp >= unsafe[i].first && cp <= unsafe[i].last)
			return true;
	return (cp & 0xfffe) == 0xfffe || (cp >= 0xfdd0 && cp <= 0xfdef); // noncharacters
}

size_t text_show_char(const char *s, size_t len, char out[TEXT_CHAR_BYTES], size_t *ret_taken)
{
	size_t n = utf8_char_len(s, len);
	uint32_t cp = n ? text_code_point(s, n) : (unsigned char)s[0];
	*ret_taken = n ? n : 1;
	if (n > 0 && !text_is_unsafe(cp)) {
		memcpy(out, s, n);
		return n;
	}
	if (cp == '\n' || cp == '\t' || cp == '\r') {
		out[0] = '\\';
		out[1] = cp == '\n' ? 'n' : cp == '\t' ? 't' : 'r';
		return 2;
	}
	return (size_t)snprintf(out, TEXT_CHAR_BYTES, n > 1 ? "\\u%04x" : "\\x%02x", (unsigned)cp);
}

size_t text_show(char *out, size_t cap, const char *s, size_t len)
{
	assert(cap >= 8);
	size_t used = 0, cut = 0, taken; // cut: the last place between two pieces where "..." still fits
	for (size_t i = 0; i < len; i += taken) {
		char piece[TEXT_CHAR_BYTES];
		size_t n_piece = text_show_char(s + i, len - i, piece, &taken);
		if (used + n_piece > cap - 1) {
			memcpy(out + cut, "...", 3);
			used = cut + 3;
			break;
		}
		memcpy(out + used, piece, n_piece);
		used += n_piece;
		if (used + 3 <= cap - 1)
			cut = used;
	}
	out[used] = '\0';
	return used;
}

size_t text_from_base64(const char *text, void *ret_bytes, size_t max)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned char *out = ret_bytes, last[3];
	size_t len = strlen(text), padding = len - strspn(text, digits), n = len / 4 * 3 - padding;
	if (len == 0 || len > INT_MAX || len % 4 != 0 || padding > 2 || strspn(text + len - padding, "=") != padding ||
	    n > max)
		return 0;
	EVP_DecodeBlock(out, (const unsigned char *)text, (int)len - 4);
	EVP_DecodeBlock(last, (const unsigned char *)text + len - 4, 4); // it writes zeros for the padding
	memcpy(out + len / 4 * 3 - 3, last, 3 - padding);
	return n;
}

bool text_is_one_of(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(words[i], text) == 0)
			return true;
	return false;
}
