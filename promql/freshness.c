// SPDX-License-Identifier: Apache-2.0
#include "promql/freshness.h"

#include <ctype.h>
#include <math.h>

#include "base/base.h"
#include "promql/lexer.h"
#include "promql/promql.h"

#define SEARCH_STEPS       5
#define SEARCH_STEP_MIN_MS 15000
#define SEARCH_STEP_MAX_MS 240000 // below PROMQL_LOOKBACK_MS, so that each sample is seen by a step
#define SEARCH_MAX_MS      (8 * 3600 * 1000LL)
_Static_assert(SEARCH_STEP_MAX_MS < PROMQL_LOOKBACK_MS, "a sample between two steps is seen by neither");

static void add_span(struct freshness_span *spans, size_t *n, const char **beyond, const char *start, size_t len)
{
	while (len && isspace((unsigned char)start[len - 1]))
		len--;
	for (size_t i = 0; i < *n; i++)
		if (spans[i].len == len && memcmp(spans[i].start, start, len) == 0)
			return;
	if (*n == FRESHNESS_SELECTORS_MAX)
		*beyond = *beyond ? *beyond : start;
	else
		spans[(*n)++] = (struct freshness_span){start, len};
}

size_t freshness_selectors(const char *query, struct freshness_span *ret_spans, const char **ret_beyond)
{
	size_t n = 0;
	*ret_beyond = NULL;
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
				add_span(ret_spans, &n, ret_beyond, t.start, (size_t)(p - t.start));
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
					add_span(ret_spans, &n, ret_beyond, t.start, (size_t)(p - t.start));
			} else {
				add_span(ret_spans, &n, ret_beyond, t.start, t.len);
			}
		}
		if (!p) // an open bracket: the rest cannot be analyzed
			return n;
	}
}

int64_t freshness_reach_ms(const char *query)
{
	int64_t reach_ms = 0;
	for (const char *p = query;;) {
		struct promql_token t = promql_next(&p);
		if (t.kind == PROMQL_TOKEN_END)
			return reach_ms;
		if (promql_token_is_sign(&t, '{'))
			p = promql_skip_brackets(t.start, '{', '}');
		if (!p)
			return reach_ms;
		if (!promql_token_is_sign(&t, '['))
			continue;
		int64_t range_ms;
		struct promql_token range = promql_next(&p); // 5m of [5m] and of [5m:30s]; a name may contain ':'
		const char *colon = memchr(range.start, ':', range.len);
		size_t len = colon ? (size_t)(colon - range.start) : range.len;
		if (num_parse_duration_ms(range.start, len, &range_ms, NULL) == 0 && range_ms <= INT64_MAX - reach_ms)
			reach_ms += range_ms;
	}
}

// One number: of each selector what `before` and `behind` make of it, the smallest.
static void put_oldest(struct buf *out, const struct freshness_span *spans, size_t n, const char *before,
                       const char *behind)
{
	buf_puts(out, "min(");
	for (size_t i = 0; i < n; i++) // a label of its own keeps `or` from dropping the second of two equal label sets
		buf_printf(out, "%slabel_replace(%s%.*s%s,\"i\",\"%zu\",\"\",\"\")", i ? " or " : "", before,
		           (int)spans[i].len, spans[i].start, behind, i);
	buf_puts(out, ")");
}

// A range reaches further back than the lookback of timestamp(), and past stale markers: rate(x[10m]) has a value, ever
// smaller, for ten minutes after the last sample. Where no selector has a present sample, the past is searched for the
// newest one. A step below the lookback misses none of it; what a step can hide is a last sample behind which a stale
// marker follows at once, and then the one before it counts.
static void put_past(struct buf *out, const struct freshness_span *spans, size_t n, int64_t reach_ms)
{
	char behind[80];
	int64_t searched_ms = reach_ms < SEARCH_MAX_MS ? reach_ms : SEARCH_MAX_MS;
	int64_t step_ms = searched_ms / SEARCH_STEPS;
	if (step_ms < SEARCH_STEP_MIN_MS)
		step_ms = SEARCH_STEP_MIN_MS;
	if (step_ms > SEARCH_STEP_MAX_MS)
		step_ms = SEARCH_STEP_MAX_MS;
	snprintf(behind, sizeof behind, ")[%lldms:%lldms]))", (long long)searched_ms, (long long)step_ms);
	buf_puts(out, " or ");
	put_oldest(out, spans, n, "max(max_over_time(timestamp(", behind);
	if (reach_ms <= searched_ms)
		return;
	snprintf(behind, sizeof behind, "[%lldms]))", (long long)reach_ms);
	buf_puts(out, " or 0*");
	put_oldest(out, spans, n, "count(count_over_time(", behind); // it is older than any staleAfter
}

enum freshness freshness_wrap(struct buf *out, const char *query)
{
	struct freshness_span spans[FRESHNESS_SELECTORS_MAX];
	const char *beyond;
	size_t n = freshness_selectors(query, spans, &beyond);
	int64_t reach_ms = freshness_reach_ms(query);
	if (beyond)
		return FRESHNESS_TOO_LONG;
	if (n == 0)
		return FRESHNESS_NONE;
	buf_puts(out, query);
	buf_puts(out, "\nor label_replace(");
	put_oldest(out, spans, n, "max(timestamp(", "))");
	if (reach_ms > 0)
		put_past(out, spans, n, reach_ms);
	buf_puts(out, ",\"" FRESHNESS_LABEL "\",\"newest\",\"\",\"\")");
	return out->failed ? FRESHNESS_TOO_LONG : FRESHNESS_WRAPPED;
}

bool freshness_is_series(const struct promql_series *s, int64_t *ret_time_ms)
{
	if (s->n_samples == 0 || promql_label(s, FRESHNESS_LABEL)[0] == '\0')
		return false;
	double seconds = s->samples[0].value;
	*ret_time_ms = isfinite(seconds) && fabs(seconds) < 1e12 ? (int64_t)llround(seconds * 1000) : 0;
	return true;
}
