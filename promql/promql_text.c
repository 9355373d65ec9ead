// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

const char *promql_text_show(char *out, size_t cap, const char *text, size_t len)
{
	while (len > 0 && is_blank(text[0])) {
		text++;
		len--;
	}
	while (len > 0 && is_blank(text[len - 1]))
		len--;
	text_show(out, cap, text, len);
	return out;
}

const char *promql_text_first_line(char *out, size_t cap, const char *text, size_t len)
{
	size_t start = 0;
	while (start < len && is_blank(text[start]))
		start++;
	const char *end = start < len ? memchr(text + start, '\n', len - start) : NULL;
	return promql_text_show(out, cap, text + start, end ? (size_t)(end - (text + start)) : len - start);
}
