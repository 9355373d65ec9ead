// SPDX-License-Identifier: Apache-2.0
#include "base/csv_text.h"

#include <math.h>

#include "base/base.h"

// Spreadsheets skip spaces in front of a formula.
static bool is_formula(const char *s)
{
	static const char *const starts[] = {
	        "=", "+", "-", "@", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
	s += strspn(s, " ");
	for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
		if (strncmp(s, starts[i], strlen(starts[i])) == 0)
			return true;
	return s[0] == '\t' || s[0] == '\r' || s[0] == '\n';
}

void csv_put_text(struct buf *out, const char *text)
{
	bool defuse = is_formula(text), quote = defuse || strpbrk(text, ",;\"");
	buf_puts(out, quote ? "\"" : "");
	buf_puts(out, defuse ? "'" : "");
	for (size_t i = 0, len = strlen(text), taken; i < len; i += taken) {
		char shown[TEXT_CHAR_BYTES];
		size_t n = text_show_char(text + i, len - i, shown, &taken);
		buf_put(out, shown, n);
		if (text[i] == '"')
			buf_putc(out, '"');
	}
	buf_puts(out, quote ? "\"" : "");
}

void csv_put_number(struct buf *out, double v)
{
	if (isinf(v))
		buf_puts(out, ",+Inf");
	else if (isnan(v))
		buf_putc(out, ',');
	else
		buf_printf(out, ",%.4f", v);
}
