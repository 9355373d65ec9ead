// SPDX-License-Identifier: Apache-2.0
// Reply bodies of the Prometheus query API, and of the page that says whose it is. Beyond "does not crash": what is
// decoded can be read to its last byte, and what is refused says why.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "promql/promql.h"
#include "promql/promql_decoder.h"
#include "promql/promql_private.h"
#include "test/support/promql_short.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

static void read_all(const struct promql_result *r)
{
	size_t bytes = r->string ? strlen(r->string) : 0;
	require((r->type == PROMQL_STRING) == (r->string != NULL));
	for (size_t i = 0; i < r->n_warnings; i++)
		bytes += strlen(r->warnings[i]);
	for (size_t i = 0; i < r->n_series; i++) {
		const struct promql_series *s = &r->series[i];
		require(r->type == PROMQL_MATRIX || s->n_samples == 1);
		for (size_t j = 0; j < s->n_labels; j++)
			bytes += strlen(s->labels[j].name) + strlen(s->labels[j].value);
		for (size_t j = 1; j < s->n_samples; j++)
			require(s->samples[j].time_ms >= s->samples[j - 1].time_ms);
	}
	require(bytes < SIZE_MAX);
}

// In pieces of any size, the result is the same; with small ceilings it is the same, or an error about a ceiling.
static void decode_in_pieces(const char *body, size_t size, int whole_rc, const struct promql_result *whole)
{
	static const char *const labels[] = {"pod", NULL};
	struct promql_budget budget = {.max_bytes = (size_t)256 * 1024};
	for (size_t round = 0; round < 3; round++) {
		struct arena a;
		struct promql_result result = {0};
		struct err e;
		size_t piece = round == 0 ? 1 : 1 + size / 3;
		struct promql_decoder_options o = {.budget = &budget};
		if (round == 2)
			o = (struct promql_decoder_options){
			        .max_series = 2, .max_bytes = 8192, .labels = labels, .budget = &budget};
		arena_init(&a, (size_t)64 * 1024 * 1024);
		struct promql_decoder *d = promql_decoder_new(&a);
		require(d != NULL);
		for (int again = 0; again < 2; again++) { // the second reply must not contain anything of the first
			int rc = 0;
			promql_decoder_start(d, &o);
			err_clear(&e);
			for (size_t at = 0; rc == 0 && at < size; at += piece)
				rc = promql_decoder_feed(d, body + at, piece < size - at ? piece : size - at, &e);
			if (rc == 0)
				rc = promql_decoder_finish(d, &result, &e);
			require(rc < 0 || budget.used_bytes == 0);
			require(rc == whole_rc || e.kind == ERR_TOO_LARGE);
			require(rc == 0 || e.msg[0]);
			if (rc < 0)
				continue;
			read_all(&result);
			require(result.n_series == whole->n_series && result.n_warnings == whole->n_warnings);
		}
		promql_decoder_free(d);
		require(budget.used_bytes == 0);
		arena_done(&a);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct err e;
	struct promql_result result;
	// The parser is given text with its terminator outside `len`, as from the HTTP client; here it must not need
	// it.
	char *body = malloc(size ? size : 1);
	if (!body)
		return 0;
	if (size)
		memcpy(body, data, size);
	arena_init(&a, (size_t)64 * 1024 * 1024);
	err_clear(&e);
	int rc = promql_decode(&a, body, size, &result, &e);
	if (rc == 0)
		read_all(&result);
	else
		require(e.kind != ERR_NONE && e.msg[0] && result.n_series == 0);
	decode_in_pieces(body, size, rc, &result);
	char version[PROMQL_VERSION_BYTES];
	require(promql_kind_of_buildinfo(body, size, version) < PROMQL_KIND_AUTO && strlen(version) < sizeof version);
	char line[PROMQL_TEXT_BYTES];
	require(strlen(promql_text_first_line(line, sizeof line, body, size)) < sizeof line);
	require(strlen(promql_text_show(line, sizeof line, body, size)) < sizeof line);
	arena_done(&a);
	free(body);
	return 0;
}
