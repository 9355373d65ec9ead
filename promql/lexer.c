// SPDX-License-Identifier: Apache-2.0
#include "promql/lexer.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

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
