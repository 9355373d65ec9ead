// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/formula_token.h"

#include <stdbool.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}
static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static bool starts_numeral(const char *text, size_t len, size_t i)
{
	return is_digit(text[i]) || (text[i] == '.' && i + 1 < len && is_digit(text[i + 1]));
}

// The sign in 1e-3; `s` follows at least one byte of a numeral.
static bool is_sign_of_exponent(const char *s)
{
	return (*s == '-' || *s == '+') && (s[-1] == 'e' || s[-1] == 'E');
}

static size_t end_of(const char *text, size_t len, size_t i)
{
	static const char *const pairs[] = {"??", "==", "!=", "<=", ">=", "&&", "||", "**"};
	char first = text[i];
	if (first == '`') {
		for (i++; i < len && text[i] != '`';)
			i++;
		return i < len ? i + 1 : i;
	}
	if (starts_numeral(text, len, i)) {
		for (i++; i < len && (is_word(text[i]) || text[i] == '.' || is_sign_of_exponent(text + i));)
			i++;
		return i;
	}
	if (is_word(first)) {
		while (i < len && is_word(text[i]))
			i++;
		return i;
	}
	for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++)
		if (i + 1 < len && first == pairs[k][0] && text[i + 1] == pairs[k][1])
			return i + 2;
	return i + 1;
}

struct formula_token formula_token_at(const char *text, size_t len, size_t at)
{
	while (at < len && memchr(" \t\r\n", text[at], 4))
		at++;
	struct formula_token t = {.kind = TOKEN_END, .offset = at};
	if (at == len)
		return t;
	char first = text[at];
	t.kind = starts_numeral(text, len, at) ? TOKEN_NUMERAL
	         : is_word(first)              ? TOKEN_WORD
	         : first == '`'                ? TOKEN_QUOTED
	                                       : TOKEN_SYMBOL;
	t.len = end_of(text, len, at) - at;
	if (t.kind == TOKEN_QUOTED && (t.len < 3 || text[at + t.len - 1] != '`'))
		t.fault = "has no closing backquote: write `name`";
	else if (t.kind == TOKEN_SYMBOL && !memchr("?:=!<>&|+-*/%^(),.[]{}#;", first, 24))
		t.fault = "has no meaning in a formula: remove it";
	return t;
}
