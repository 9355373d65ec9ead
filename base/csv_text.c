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

struct csv_line csv_line_at(const char *text, size_t len, size_t *ret_next)
{
	const char *nl = memchr(text, '\n', len);
	size_t n = nl ? (size_t)(nl - text) : len;
	*ret_next = nl ? n + 1 : n;
	if (n > 0 && text[n - 1] == '\r')
		n--;
	return (struct csv_line){.at = text, .end = text + n};
}

bool csv_next_cell(struct csv_line *l, const char **ret_cell, size_t *ret_len)
{
	if (l->done)
		return false;
	const char *comma = memchr(l->at, ',', (size_t)(l->end - l->at));
	const char *from = l->at, *to = comma ? comma : l->end;
	l->done = !comma;
	l->at = comma ? comma + 1 : l->end;
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	if (!l->keeps_quotes && to - from >= 2 && *from == '"' && to[-1] == '"') {
		from++;
		to--;
	}
	*ret_cell = from;
	*ret_len = (size_t)(to - from);
	return true;
}

bool csv_cell_at(struct csv_line l, int column, const char **ret_cell, size_t *ret_len)
{
	for (int i = 0; i < column; i++)
		if (!csv_next_cell(&l, ret_cell, ret_len))
			return false;
	return csv_next_cell(&l, ret_cell, ret_len);
}

int csv_find_column(struct csv_line header, const char *name)
{
	const char *cell;
	size_t len;
	for (int i = 0; csv_next_cell(&header, &cell, &len); i++)
		if (len == strlen(name) && memcmp(cell, name, len) == 0)
			return i;
	return -1;
}
