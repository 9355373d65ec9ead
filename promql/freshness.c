// SPDX-License-Identifier: Apache-2.0
#include "promql/freshness.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "promql/promql.h"

static bool is_name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_' || c == ':';
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == ':';
}

// Behind a quoted string that starts at p; the end of text if it is not closed. Backquoted strings know no escapes.
static const char *skip_string(const char *p)
{
	char quote = *p++;
	while (*p && *p != quote)
		p += (*p == '\\' && quote != '`' && p[1]) ? 2 : 1;
	return *p ? p + 1 : p;
}

// Behind the bracket that closes the one at p, strings inside respected; NULL if it is not closed.
static const char *skip_brackets(const char *p, char open, char close)
{
	int depth = 0;
	while (*p) {
		if (*p == '"' || *p == '\'' || *p == '`') {
			p = skip_string(p);
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

static const char *skip_blanks(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

static bool is_word(const char *word, size_t len, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == len && strncasecmp(word, *words, len) == 0)
			return true;
	return false;
}

static void add_span(struct freshness_span *spans, size_t *n, const char *start, size_t len)
{
	while (len && isspace((unsigned char)start[len - 1]))
		len--;
	for (size_t i = 0; i < *n; i++)
		if (spans[i].len == len && memcmp(spans[i].start, start, len) == 0)
			return;
	if (*n < FRESHNESS_SELECTORS_MAX)
		spans[(*n)++] = (struct freshness_span){start, len};
}

size_t freshness_selectors(const char *query, struct freshness_span *ret_spans)
{
	// Prometheus: promql/parser/lex.go, key. Words followed by a list of label names, and words that stand alone.
	static const char *const label_lists[] = {"by", "without", "on", "ignoring", "group_left", "group_right", NULL};
	static const char *const words[] = {
	        "and",  "or",      "unless",   "atan2",        "offset", "bool",        "inf",   "nan",    "start",
	        "end",  "sum",     "avg",      "count",        "min",    "max",         "group", "stddev", "stdvar",
	        "topk", "bottomk", "quantile", "count_values", "limitk", "limit_ratio", NULL};
	size_t n = 0;
	const char *p = query;
	while (*p) {
		const char *start = p;
		if (*p == '"' || *p == '\'' || *p == '`') {
			p = skip_string(p);
		} else if (*p == '#') {
			while (*p && *p != '\n')
				p++;
		} else if (*p == '[') { // a range: durations only
			const char *end = skip_brackets(p, '[', ']');
			if (!end)
				return n;
			p = end;
		} else if (*p == '{') {
			const char *end = skip_brackets(p, '{', '}');
			if (!end)
				return n;
			add_span(ret_spans, &n, start, (size_t)(end - start));
			p = end;
		} else if (isdigit((unsigned char)*p)) { // number or duration, "5m", "0x1f", "1e3"
			while (isalnum((unsigned char)*p) || *p == '.')
				p++;
		} else if (is_name_start(*p)) {
			while (is_name_char(*p))
				p++;
			size_t len = (size_t)(p - start);
			const char *next = skip_blanks(p);
			if (is_word(start, len, label_lists)) {
				const char *end = *next == '(' ? skip_brackets(next, '(', ')') : p;
				if (!end)
					return n;
				p = end;
			} else if (is_word(start, len, words) || *next == '(') {
				continue; // operator, aggregation or function
			} else if (*next == '{') {
				const char *end = skip_brackets(next, '{', '}');
				if (!end)
					return n;
				add_span(ret_spans, &n, start, (size_t)(end - start));
				p = end;
			} else {
				add_span(ret_spans, &n, start, len);
			}
		} else {
			p++;
		}
	}
	return n;
}

bool freshness_wrap(struct buf *out, const char *query)
{
	struct freshness_span spans[FRESHNESS_SELECTORS_MAX];
	size_t n = freshness_selectors(query, spans);
	if (n == 0)
		return false;
	buf_puts(out, query);
	buf_puts(out, "\nor label_replace(min(");
	for (size_t i = 0; i < n; i++) // a label of its own keeps `or` from dropping the second of two equal label sets
		buf_printf(out, "%slabel_replace(max(timestamp(%.*s)),\"i\",\"%zu\",\"\",\"\")", i ? " or " : "",
		           (int)spans[i].len, spans[i].start, i);
	buf_puts(out, "),\"" FRESHNESS_LABEL "\",\"newest\",\"\",\"\")");
	return true;
}

bool freshness_is_series(const struct promql_series *s, int64_t *ret_time_ms)
{
	if (s->n_samples == 0 || promql_label(s, FRESHNESS_LABEL)[0] == '\0')
		return false;
	double seconds = s->samples[0].value;
	*ret_time_ms = isfinite(seconds) && fabs(seconds) < 1e12 ? (int64_t)llround(seconds * 1000) : 0;
	return true;
}
