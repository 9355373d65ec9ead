// SPDX-License-Identifier: Apache-2.0
// Confines any text as a query. Beyond not crashing: the output is accepted again and stays unchanged, every selector
// in it (found by another parser, promql/freshness.h) has the matcher, and a refusal has a position. A text that can be
// combined with similar ones keeps its shape whatever its values are, and adds no selector.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "promql/confine.h"
#include "promql/freshness.h"
#include "promql/similar.h"

#define QUERY_MAX 4096
#define OUT_MAX   (64 * QUERY_MAX)
#define MATCHER   "ns=\"a-1\""

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

static void check_selectors(const char *query)
{
	struct freshness_span spans[FRESHNESS_SELECTORS_MAX];
	const char *beyond;
	size_t n = freshness_selectors(query, spans, &beyond);
	for (size_t i = 0; i < n; i++) {
		require(spans[i].start[spans[i].len - 1] == '}');
		require(memmem(spans[i].start, spans[i].len, "ns", 2) != NULL &&
		        memmem(spans[i].start, spans[i].len, "a-1", 3) != NULL);
	}
}

static void check_similar(const char *query)
{
	struct freshness_span spans[FRESHNESS_SELECTORS_MAX];
	struct similar_query parsed[2], again;
	const char *queries[] = {query, query}, *beyond;
	struct buf all, shape;
	if (!similar_parse(query, &parsed[0]))
		return;
	parsed[1] = parsed[0];
	buf_init(&all, OUT_MAX);
	buf_init(&shape, OUT_MAX);
	similar_put_shape(&shape, query, &parsed[0]);
	require(shape.len < strlen(query) || parsed[0].n == 0);
	similar_put_all(&all, queries, parsed, 2);
	require(!all.failed && freshness_selectors(buf_str(&all), spans, &beyond) == 1);
	if (parsed[0].n == 0)
		require(strcmp(buf_str(&all), query) == 0);
	else
		require(parsed[0].by_at > 0 || (similar_parse(buf_str(&all), &again) && again.n == 0));
	buf_done(&all);
	buf_done(&shape);
}

// As the value of --series-matcher: what is accepted is accepted again, and stays within the braces of one selector.
static void check_matchers(const char *text)
{
	struct freshness_span spans[FRESHNESS_SELECTORS_MAX];
	struct buf once, twice, query;
	const char *beyond;
	struct err e = {0};
	buf_init(&once, OUT_MAX);
	buf_init(&twice, OUT_MAX);
	buf_init(&query, OUT_MAX);
	if (confine_check_matchers(&once, text, &e) == 0) {
		require(confine_check_matchers(&twice, buf_str(&once), &e) == 0);
		require(strcmp(buf_str(&once), buf_str(&twice)) == 0);
		require(confine_add_matchers(&query, "up", buf_str(&once), &e) == 0);
		require(freshness_selectors(buf_str(&query), spans, &beyond) == 1 && spans[0].len == query.len);
	} else {
		require(e.kind == ERR_INPUT || e.kind == ERR_LIMIT);
	}
	buf_done(&once);
	buf_done(&twice);
	buf_done(&query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf once, twice;
	struct err e = {0};
	size_t offset = SIZE_MAX;
	char *query = malloc(size + 1);
	if (size > QUERY_MAX || !query) {
		free(query);
		return 0;
	}
	if (size)
		memcpy(query, data, size);
	query[size] = '\0';
	check_similar(query);
	check_matchers(query);
	buf_init(&once, OUT_MAX);
	buf_init(&twice, OUT_MAX);
	if (confine_query(&once, query, "ns", "a-1", &offset, &e) == 0) {
		require(confine_query(&twice, buf_str(&once), "ns", "a-1", NULL, &e) == 0);
		require(strcmp(buf_str(&once), buf_str(&twice)) == 0);
		check_selectors(buf_str(&once));
	} else {
		require(e.kind == ERR_INPUT || e.kind == ERR_LIMIT);
		require(offset <= strlen(query) && e.msg[0] >= '1' && e.msg[0] <= '9');
	}
	buf_done(&once);
	buf_done(&twice);
	free(query);
	return 0;
}
