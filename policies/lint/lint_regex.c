// SPDX-License-Identifier: Apache-2.0
#include "policies/lint/lint_regex.h"

#include <string.h>

#define NESTING_MAX 64

// Returns the number of bytes of the class that starts at p, without its last one; 0: it is not closed.
static size_t class_len(const char *p, size_t len)
{
	size_t first = 1 + (p[1] == '^');
	first += p[first] == ']'; // an ordinary character there
	const char *end = first < len ? memchr(p + first, ']', len - first) : NULL;
	return end ? (size_t)(end - p) : 0;
}

static bool is_lookaround(const char *p)
{
	p += p[2] == '<';
	return p[2] == '=' || p[2] == '!';
}

const char *lint_regex_fault(const char *text, size_t len, bool is_raw, size_t *ret_at)
{
	bool is_start = true; // there is nothing to repeat yet
	size_t open[NESTING_MAX], depth = 0, n;
	for (size_t i = 0; i < len; i++) {
		const char *p = text + i;
		bool is_double = !is_raw && p[1] == '\\', was_start = is_start;
		*ret_at = i;
		is_start = *p == '|' || *p == '(';
		switch (*p) {
		case '\\':
			if (p[1 + is_double] == 'Q')
				return NULL; // literal up to \E
			i += is_double ? 2 + (size_t)(p[2] == '\\') : 1;
			break;
		case '[':
			if (memchr(p + 1, '\\', len - i - 1) || memchr(p + 1, '[', len - i - 1))
				return NULL;
			n = class_len(p, len - i);
			if (n == 0)
				return "this [ is never closed";
			i += n;
			break;
		case '(':
			if (depth == NESTING_MAX)
				return NULL;
			open[depth++] = i;
			if (p[1] != '?')
				break;
			if (is_lookaround(p))
				return "no server has lookahead and lookbehind: write two matchers";
			i += strcspn(p, ":>)\"'`"); // (?:, (?i), (?P<name>
			depth -= text[i] == ')';
			break;
		case ')':
			if (depth == 0)
				return "this ) was never opened";
			depth--;
			break;
		case '*':
		case '+':
		case '?':
			if (was_start)
				return "there is nothing to repeat before this";
			break;
		default:
			break;
		}
	}
	if (depth == 0)
		return NULL;
	*ret_at = open[depth - 1];
	return "this ( is never closed";
}
