// SPDX-License-Identifier: Apache-2.0
// Places in the file: elements of a list, and the line and column of a place in a decoded query.
#include <ctype.h>
#include <string.h>

#include "base/schema/doc.h"
#include "policies/lint/lint.h"

static const char *to_line(const char *text, int line)
{
	for (; line > 1 && *text; line--) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return text;
}

// YAML only adds or drops separators (spaces, line ends, quotes, backslashes), so that the file contains every visible
// character of the decoded text in the same order.
bool lint_offset(const char *text, const struct doc_node *node, size_t offset, size_t *ret_offset)
{
	if (!text || node->line < 1 || node->col < 1)
		return false;
	const char *line = to_line(text, node->line);
	const char *p = line;
	for (int col = 1; col < node->col && *p && *p != '\n'; col++)
		for (p++; ((unsigned char)*p & 0xc0) == 0x80;) // columns count characters
			p++;
	if (*p == '|' || *p == '>') // header of a block
		p += strcspn(p, "\n");
	for (size_t i = 0; i <= offset && i < node->text_len; i++) {
		char c = node->text[i];
		if (isspace((unsigned char)c))
			continue;
		while (*p && *p != c)
			p++;
		if (!*p)
			return false;
		if (i < offset)
			p++;
	}
	*ret_offset = (size_t)(p - text);
	return true;
}

void lint_place(const char *text, const struct doc_node *node, size_t offset, int *ret_line, int *ret_col)
{
	size_t at;
	*ret_line = node->line;
	*ret_col = node->col;
	if (!lint_offset(text, node, offset, &at))
		return;
	int l = 1, col = 1;
	for (const char *s = text; s < text + at; s++) {
		if (*s == '\n') {
			l++;
			col = 1;
		} else if (((unsigned char)*s & 0xc0) != 0x80) {
			col++;
		}
	}
	*ret_line = l;
	*ret_col = col;
}

const struct doc_node *lint_element(const struct doc_node *list, size_t i)
{
	const struct doc_node *n = list ? list->child : NULL;
	for (; n && i > 0; i--)
		n = n->next;
	return n;
}
