// SPDX-License-Identifier: Apache-2.0
#include "policies/lint/lint_metric_name.h"

#include <string.h>

#include "promql/lexer.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:"

static bool next_alternative(struct lint_metric_names *r, const char **ret_name, size_t *ret_len)
{
	if (r->rest >= r->end)
		return false;
	size_t len = strspn(r->rest, NAME_CHARACTERS);
	*ret_name = r->rest;
	*ret_len = len;
	r->rest += len + 1; // behind the '|' or the quote
	return true;
}

// Whether the string, without its quotes, contains only names, with '|' between them if `is_regex`.
static bool holds_names(const char *s, size_t len, bool is_regex)
{
	const char *end = s + len;
	for (;; s++) {
		size_t n = strspn(s, NAME_CHARACTERS);
		s += n;
		if (n == 0 || s > end || (s < end && (!is_regex || *s != '|')))
			return false;
		if (s == end)
			return true;
	}
}

// A quoted name of a label ({"a.b"="c"}) is followed by an operator, a quoted name of a metric is not.
static bool is_label(const char *behind)
{
	struct promql_token t = promql_next(&behind);
	return promql_token_is_sign(&t, '=') || promql_token_is_sign(&t, '!');
}

// Reads a string inside braces: the value of a matcher, or a name.
static void read_string(struct lint_metric_names *r, const struct promql_token *t)
{
	bool is_name = r->is_start ? !is_label(r->next) : r->is_name_label && r->is_equal;
	if (is_name && !t->is_open && t->len > 2 && holds_names(t->start + 1, t->len - 2, r->is_regex)) {
		r->rest = t->start + 1;
		r->end = t->start + t->len - 1;
	}
}

static void read_in_braces(struct lint_metric_names *r, const struct promql_token *t)
{
	static const char *const label[] = {"__name__", NULL};
	bool was_start = r->is_start;
	r->is_start = promql_token_is_sign(t, ',');
	if (r->is_start || was_start)
		r->is_name_label = r->is_equal = r->is_regex = false;
	if (promql_token_is_sign(t, '}'))
		r->in_braces = false;
	else if (t->kind == PROMQL_TOKEN_NAME)
		r->is_name_label = was_start && promql_token_is_word(t, label);
	else if (promql_token_is_sign(t, '='))
		r->is_equal = true;
	else if (promql_token_is_sign(t, '!'))
		r->is_name_label = false;
	else if (promql_token_is_sign(t, '~'))
		r->is_regex = true;
	if (t->kind == PROMQL_TOKEN_STRING) {
		r->is_start = was_start;
		read_string(r, t);
		r->is_start = false;
	}
}

bool lint_metric_names_next(struct lint_metric_names *r, const char **ret_name, size_t *ret_len)
{
	while (!next_alternative(r, ret_name, ret_len)) {
		struct promql_token t = promql_next(&r->next);
		if (t.kind == PROMQL_TOKEN_END)
			return false;
		if (r->in_braces) {
			read_in_braces(r, &t);
		} else if (promql_token_is_sign(&t, '{')) {
			r->in_braces = r->is_start = true;
		} else if (t.kind == PROMQL_TOKEN_NAME) {
			*ret_name = t.start;
			*ret_len = t.len;
			return true;
		}
	}
	return true;
}
