// SPDX-License-Identifier: Apache-2.0
#include "base/xml_text.h"

#include "base/base.h"

// XML 1.0, "Characters": no control characters but tab and line ends, no surrogates, not U+FFFE and U+FFFF.
static bool is_xml(uint32_t c)
{
	return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0xfffe && c != 0xffff);
}

static const char *reference_of(uint32_t c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	case '\r':
		return "&#13;";
	default:
		return NULL;
	}
}

void xml_put_textn(struct buf *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = utf8_char_len(s + i, len - i);
		uint32_t c = n ? text_code_point(s + i, n) : 0;
		const char *reference = reference_of(c);
		if (!is_xml(c))
			buf_puts(out, UTF8_REPLACEMENT);
		else if (reference)
			buf_puts(out, reference);
		else if (text_is_unsafe(c) && c != '\t' && c != '\n')
			buf_printf(out, "\\u%04x", (unsigned)c);
		else
			buf_put(out, s + i, n);
		i += n ? n : 1;
	}
}

void xml_put_text(struct buf *out, const char *s)
{
	xml_put_textn(out, s, strlen(s));
}
