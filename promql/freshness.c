// SPDX-License-Identifier: Apache-2.0
#include "promql/freshness.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "promql/lexer.h"
#include "promql/promql.h"

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
	size_t n = 0;
	const char *p = query;
	for (;;) {
		struct promql_token t = promql_next(&p), next;
		const char *ahead = p;
		if (t.kind == PROMQL_TOKEN_END)
			return n;
		if (promql_token_is_sign(&t, '[')) { // a range: durations only
			p = promql_skip_brackets(t.start, '[', ']');
		} else if (promql_token_is_sign(&t, '{')) {
			p = promql_skip_brackets(t.start, '{', '}');
			if (p)
				add_span(ret_spans, &n, t.start, (size_t)(p - t.start));
		} else if (t.kind == PROMQL_TOKEN_NAME) {
			next = promql_next(&ahead);
			if (promql_token_is_word(&t, promql_label_list_words)) {
				if (promql_token_is_sign(&next, '('))
					p = promql_skip_brackets(next.start, '(', ')');
			} else if (promql_token_is_word(&t, promql_aggregations) ||
			           promql_token_is_word(&t, promql_other_words) || promql_token_is_sign(&next, '(')) {
				continue; // operator, aggregation or function
			} else if (promql_token_is_sign(&next, '{')) {
				p = promql_skip_brackets(next.start, '{', '}');
				if (p)
					add_span(ret_spans, &n, t.start, (size_t)(p - t.start));
			} else {
				add_span(ret_spans, &n, t.start, t.len);
			}
		}
		if (!p) // an open bracket: nothing behind it can be told
			return n;
	}
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
