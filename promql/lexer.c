// SPDX-License-Identifier: Apache-2.0
#include "promql/lexer.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

// ---- literals (Prometheus: promql/parser/lex.go) ----

static size_t count_digits(const char *p, size_t len)
{
	size_t n = 0;
	while (n < len && (isdigit((unsigned char)p[n]) || (p[n] == '_' && n > 0 && n + 1 < len && p[n - 1] != '_' &&
	                                                    isdigit((unsigned char)p[n + 1]))))
		n++;
	return n;
}

// Returns the length of the digits, with or without a fraction; 0 when there are none.
static size_t count_decimal(const char *p, size_t len)
{
	size_t n = count_digits(p, len), fraction = 0;
	if (n < len && p[n] == '.')
		fraction = 1 + count_digits(p + n + 1, len - n - 1);
	return n + fraction > 1 || n == 1 ? n + fraction : 0;
}

bool promql_is_duration(const char *p, size_t len)
{
	static const char *const units[] = {"ms", "s", "m", "h", "d", "w", "y"};
	if (len == 0)
		return false;
	while (len > 0) {
		size_t n = count_decimal(p, len), unit = 0;
		for (size_t i = 0; n > 0 && unit == 0 && i < sizeof units / sizeof units[0]; i++) {
			size_t size = strlen(units[i]);
			if (len - n >= size && memcmp(p + n, units[i], size) == 0)
				unit = size;
		}
		if (unit == 0)
			return false;
		p += n + unit;
		len -= n + unit;
	}
	return true;
}

bool promql_is_number(const char *p, size_t len)
{
	if (len > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		for (size_t i = 2; i < len; i++)
			if (!isxdigit((unsigned char)p[i]) && (p[i] != '_' || p[i - 1] == '_' || i + 1 == len))
				return false;
		return true;
	}
	size_t n = count_decimal(p, len);
	if (n > 0 && n < len && (p[n] == 'e' || p[n] == 'E')) {
		size_t sign = n + 1 < len && (p[n + 1] == '+' || p[n + 1] == '-');
		size_t exponent = count_digits(p + n + 1 + sign, len - n - 1 - sign);
		n = exponent ? n + 1 + sign + exponent : 0;
	}
	return n == len && n > 0;
}

size_t promql_escape_len(const char *p, char quote)
{
	static const struct {
		char letter;
		size_t digits;
	} codes[] = {{'x', 2}, {'u', 4}, {'U', 8}};
	if (strchr("abfnrtv\\", p[1]) || p[1] == quote)
		return 2;
	if (p[1] >= '0' && p[1] <= '7')
		return strspn(p + 1, "01234567") >= 3 ? 4 : 0;
	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		if (p[1] == codes[i].letter)
			return strspn(p + 2, "0123456789abcdefABCDEF") >= codes[i].digits ? 2 + codes[i].digits : 0;
	return 0;
}

// Prometheus: promql/parser/lex.go, key.
const char *const promql_label_list_words[] = {"by", "without", "on", "ignoring", "group_left", "group_right", NULL};
const char *const promql_aggregations[] = {"sum",      "avg",          "count",  "min",         "max",
                                           "group",    "stddev",       "stdvar", "topk",        "bottomk",
                                           "quantile", "count_values", "limitk", "limit_ratio", NULL};
const char *const promql_other_words[] = {"and", "or",  "unless", "atan2", "offset", "bool",
                                          "inf", "nan", "start",  "end",   NULL};

static bool is_name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_' || c == ':';
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == ':';
}

// Behind a quoted string that starts at p; the end of text if it is not closed. Backquoted strings know no escapes.
static const char *skip_string(const char *p, bool *ret_is_open)
{
	char quote = *p++;
	while (*p && *p != quote)
		p += (*p == '\\' && quote != '`' && p[1]) ? 2 : 1;
	*ret_is_open = !*p;
	return *p ? p + 1 : p;
}

// The sign of an exponent belongs to the number, but 0x1e-5 is a subtraction.
static const char *skip_number(const char *p)
{
	bool is_hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
	const char *start = p;
	for (;; p++) {
		bool is_sign = (*p == '+' || *p == '-') && !is_hex && p > start && (p[-1] == 'e' || p[-1] == 'E') &&
		               isdigit((unsigned char)p[1]);
		if (!isalnum((unsigned char)*p) && *p != '.' && *p != '_' && !is_sign)
			return p;
	}
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

const char *promql_skip_brackets(const char *p, char open, char close)
{
	int depth = 0;
	while (*p) {
		if (is_quote(*p)) {
			bool is_open;
			p = skip_string(p, &is_open);
			continue;
		}
		if (*p == open)
			depth++;
		if (*p == close && --depth == 0)
			return p + 1;
		p++;
	}
	return NULL;
}

struct promql_token promql_next(const char **p)
{
	const char *s = *p;
	while (isspace((unsigned char)*s) || *s == '#') {
		if (*s == '#')
			s += strcspn(s, "\r\n"); // Prometheus: promql/parser/lex.go, isEndOfLine
		else
			s++;
	}
	struct promql_token t = {.kind = PROMQL_TOKEN_END, .start = s};
	if (is_quote(*s)) {
		t.kind = PROMQL_TOKEN_STRING;
		s = skip_string(s, &t.is_open);
	} else if (isdigit((unsigned char)*s) || (*s == '.' && isdigit((unsigned char)s[1]))) {
		t.kind = PROMQL_TOKEN_NUMBER;
		s = skip_number(s);
	} else if (is_name_start(*s)) {
		t.kind = PROMQL_TOKEN_NAME;
		while (is_name_char(*s))
			s++;
	} else if (*s) {
		t.kind = PROMQL_TOKEN_SIGN;
		s++;
	}
	t.len = (size_t)(s - t.start);
	*p = s;
	return t;
}

bool promql_token_is_sign(const struct promql_token *t, char sign)
{
	return t->kind == PROMQL_TOKEN_SIGN && *t->start == sign;
}

bool promql_token_is_word(const struct promql_token *t, const char *const *words)
{
	for (; t->kind == PROMQL_TOKEN_NAME && *words; words++)
		if (((**words ^ *t->start) & ~0x20) == 0 && strlen(*words) == t->len &&
		    strncasecmp(t->start, *words, t->len) == 0) // the first comparison is the usual case, cheaply
			return true;
	return false;
}
