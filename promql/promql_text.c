// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

static bool is_blank(unsigned char c)
{
	return c <= 0x20 || c == 0x7f;
}

// Length of a character fit to be shown, else 0. U+0080..U+009F are controls too: a terminal may act on them.
static size_t shown_length(const char *s, size_t len)
{
	bool is_control = len > 1 && (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0;
	return is_control ? 0 : utf8_char_len(s, len);
}

const char *promql_text_clean(char out[static PROMQL_TEXT_BYTES], const char *text, size_t len)
{
	size_t room = PROMQL_TEXT_BYTES - sizeof "...", used = 0, i = 0;
	bool gap = false;
	while (i < len) {
		if (is_blank((unsigned char)text[i])) {
			gap = used > 0;
			i++;
			continue;
		}
		size_t n = shown_length(text + i, len - i);
		size_t need = (n ? n : 1) + (gap ? 1 : 0);
		if (used + need > room) {
			memcpy(out + used, "...", 3);
			used += 3;
			break;
		}
		if (gap)
			out[used++] = ' ';
		gap = false;
		if (n)
			memcpy(out + used, text + i, n);
		else
			out[used] = '?';
		used += n ? n : 1;
		i += n ? n : 1;
	}
	out[used] = '\0';
	return out;
}

const char *promql_text_first_line(char out[static PROMQL_TEXT_BYTES], const char *text, size_t len)
{
	size_t start = 0;
	while (start < len && is_blank((unsigned char)text[start]))
		start++;
	const char *end = start < len ? memchr(text + start, '\n', len - start) : NULL;
	return promql_text_clean(out, text + start, end ? (size_t)(end - (text + start)) : len - start);
}
