// SPDX-License-Identifier: Apache-2.0
#include "promql/similar.h"

#include "base/base.h"
#include "promql/lexer.h"
#include "promql/promql.h"

// These functions return one series for each series of the selector.
static const char *const functions[] = {
        "rate",          "irate",         "increase",        "delta",          "idelta",
        "deriv",         "changes",       "resets",          "avg_over_time",  "max_over_time",
        "min_over_time", "sum_over_time", "count_over_time", "last_over_time", NULL};
static const char *const aggregations[] = {"sum", "avg", "min", "max", "count", NULL};

// Reads name="value". Returns false for a value that would have to be decoded, or that also matches a missing label.
static bool read_equal(const char *query, const struct promql_token *name, const struct promql_token *value,
                       struct similar_query *q)
{
	if (q->n == SIMILAR_LABELS_MAX || name->len >= SIMILAR_NAME_BYTES_MAX || value->is_open || value->len <= 2 ||
	    value->start[0] != '"' || memchr(value->start, '\\', value->len))
		return false;
	memcpy(q->name[q->n], name->start, name->len);
	q->name[q->n][name->len] = '\0';
	if (strcmp(q->name[q->n], "__name__") == 0)
		return false;
	for (size_t i = 0; i < q->n; i++)
		if (strcmp(q->name[i], q->name[q->n]) == 0)
			return false;
	size_t at = (size_t)(name->start - query), end = (size_t)(value->start - query) + value->len;
	q->matcher[q->n] = (struct similar_span){at, end - at};
	q->value[q->n] = (struct similar_span){end - value->len + 1, value->len - 2};
	q->n++;
	return true;
}

// Reads the matchers up to the closing brace. The opening brace has been read.
static bool read_matchers(const char *query, const char **p, struct similar_query *q)
{
	for (;;) {
		struct promql_token name = promql_next(p);
		if (promql_token_is_sign(&name, '}'))
			return true;
		struct promql_token sign = promql_next(p), value = promql_next(p);
		bool is_equal = promql_token_is_sign(&sign, '=') && value.kind == PROMQL_TOKEN_STRING;
		bool is_other = promql_token_is_sign(&sign, '!') &&
		                (promql_token_is_sign(&value, '=') || promql_token_is_sign(&value, '~'));
		is_other |= promql_token_is_sign(&sign, '=') && promql_token_is_sign(&value, '~');
		if (name.kind != PROMQL_TOKEN_NAME || (!is_equal && !is_other))
			return false;
		if (!is_equal)
			value = promql_next(p); // =~, !=, !~: a part of the shape
		if (value.kind != PROMQL_TOKEN_STRING || (is_equal && !read_equal(query, &name, &value, q)))
			return false;
		struct promql_token next = promql_next(p);
		if (promql_token_is_sign(&next, '}'))
			return true;
		if (!promql_token_is_sign(&next, ','))
			return false;
	}
}

// Reads NAME( for a NAME in words, unless something else is there.
static bool read_call(const char **p, const char *const *words, size_t *ret_end, const char *query)
{
	const char *ahead = *p;
	struct promql_token name = promql_next(&ahead), open = promql_next(&ahead);
	if (!promql_token_is_word(&name, words) || !promql_token_is_sign(&open, '('))
		return false;
	*ret_end = (size_t)(name.start - query) + name.len;
	*p = ahead;
	return true;
}

bool similar_parse(const char *query, struct similar_query *ret_parsed)
{
	const char *p = query;
	size_t end;
	struct similar_query *q = ret_parsed;
	q->n = q->by_at = 0;
	if (memchr(query, '#', strlen(query)))
		return false; // a comment would hide what is appended
	int n_open = read_call(&p, aggregations, &q->by_at, query);
	bool has_range = read_call(&p, functions, &end, query);
	n_open += has_range;
	struct promql_token t = promql_next(&p);
	const char *ahead = p;
	struct promql_token next = promql_next(&ahead);
	if (t.kind != PROMQL_TOKEN_NAME || promql_token_is_word(&t, promql_other_words) ||
	    promql_token_is_word(&t, promql_aggregations) || promql_token_is_word(&t, promql_label_list_words))
		return false;
	if (promql_token_is_sign(&next, '{')) {
		p = ahead;
		if (!read_matchers(query, &p, q))
			return false;
	}
	if (has_range) {
		struct promql_token open = promql_next(&p), range = promql_next(&p), close = promql_next(&p);
		if (!promql_token_is_sign(&open, '[') || range.kind != PROMQL_TOKEN_NUMBER ||
		    !promql_token_is_sign(&close, ']'))
			return false;
	}
	for (t = promql_next(&p); n_open > 0 && promql_token_is_sign(&t, ')'); t = promql_next(&p))
		n_open--;
	return n_open == 0 && t.kind == PROMQL_TOKEN_END;
}

void similar_put_shape(struct buf *out, const char *query, const struct similar_query *parsed)
{
	size_t at = 0;
	for (size_t i = 0; i < parsed->n; i++) {
		buf_put(out, query + at, parsed->value[i].at - at);
		at = parsed->value[i].at + parsed->value[i].len;
	}
	buf_puts(out, query + at);
}

// The value as a regular expression in a string.
static void put_pattern(struct buf *out, const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (strchr(".+*?()|[]{}^$", value[i]))
			buf_puts(out, "\\\\");
		buf_putc(out, value[i]);
	}
}

static bool is_first(const char *const *queries, const struct similar_query *parsed, size_t n, size_t label)
{
	const struct similar_span *mine = &parsed[n].value[label];
	for (size_t i = 0; i < n; i++) {
		const struct similar_span *other = &parsed[i].value[label];
		if (other->len == mine->len && memcmp(queries[i] + other->at, queries[n] + mine->at, mine->len) == 0)
			return false;
	}
	return true;
}

void similar_put_all(struct buf *out, const char *const *queries, const struct similar_query *parsed, size_t n)
{
	const struct similar_query *q = parsed;
	const char *query = queries[0];
	size_t at = 0;
	if (q->by_at > 0 && q->n > 0) {
		buf_put(out, query, q->by_at);
		for (size_t i = 0; i < q->n; i++)
			buf_printf(out, "%s%s", i ? "," : " by (", q->name[i]);
		buf_puts(out, ") ");
		at = q->by_at;
	}
	for (size_t i = 0; i < q->n; i++) {
		buf_put(out, query + at, q->matcher[i].at - at);
		buf_printf(out, "%s=~\"", q->name[i]);
		for (size_t k = 0; k < n; k++) {
			if (!is_first(queries, parsed, k, i))
				continue;
			if (k > 0)
				buf_putc(out, '|');
			put_pattern(out, queries[k] + parsed[k].value[i].at, parsed[k].value[i].len);
		}
		buf_putc(out, '"');
		at = q->matcher[i].at + q->matcher[i].len;
	}
	buf_puts(out, query + at);
}

bool similar_matches(const struct promql_series *s, const char *query, const struct similar_query *parsed)
{
	for (size_t i = 0; i < parsed->n; i++) {
		const char *value = promql_label(s, parsed->name[i]);
		const struct similar_span *sought = &parsed->value[i];
		if (strlen(value) != sought->len || memcmp(value, query + sought->at, sought->len) != 0)
			return false;
	}
	return true;
}

// ---- any queries ----

void fuse_add(struct buf *out, const char *query, int i)
{
	buf_printf(out, "%slabel_replace((%s\n),\"" FUSE_LABEL "\",\"%d\",\"\",\"\")", i ? "\nor " : "", query, i);
}

int fuse_index(const struct promql_series *s)
{
	const char *text = promql_label(s, FUSE_LABEL);
	int64_t i;
	return text[0] && num_parse_i64(text, strlen(text), 0, FUSE_MAX - 1, &i, NULL) == 0 ? (int)i : -1;
}
