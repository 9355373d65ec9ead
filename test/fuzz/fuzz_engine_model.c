// SPDX-License-Identifier: Apache-2.0
// Arbitrary documents as an EngineModel, and arbitrary text as its file of lengths. Beyond "does not crash": what is
// accepted has requests that fit a replica and finite rates, and its engines conserve requests.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "replay/engine.h"

#define ARENA_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define REQUESTS_MAX    200.0 // simulated
#define TOKENS_MAX      100000.0

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_samples(const struct engine_model *m)
{
	require(m->n_samples > 0);
	for (size_t i = 0; i < m->n_samples; i++)
		require(m->samples[i].prompt >= 1 && m->samples[i].output >= 1 &&
		        m->samples[i].prompt <= m->kv_tokens - m->samples[i].output);
}

static void play(const struct engine_model *m)
{
	const struct engine_setup setup = {m, 0, 10};
	struct engine *e = engine_new(&setup, 1, 1000);
	require(e != NULL);
	for (int32_t i = 0; i < 5; i++)
		require(engine_step(e, i % 3, REQUESTS_MAX / 5 / m->max_requests_s, NULL) == 0);
	const struct engine_history *h = engine_history(e);
	const struct engine_sample *t = &h->samples[(h->n - 1) % ENGINE_HISTORY];
	require(t->finished <= t->first_tokens && t->first_tokens + t->refused <= t->arrived);
	require(t->prompt_tokens + t->generation_tokens <= t->arrived_tokens);
	for (int metric = 0; metric < ENGINE_METRIC__COUNT; metric++)
		require(!(engine_history_read(engine_history(e), (enum engine_metric)metric) < 0));
	engine_free(e);
}

static void check_model(const struct engine_model *m)
{
	if (m->samples_file)
		return; // its file is not read
	check_samples(m);
	require(isfinite(m->max_requests_s) && m->max_requests_s > 0 && isfinite(m->figure) && m->figure > 0);
	for (int i = 0; i < 36; i++) {
		struct engine_factors f = engine_model_factors(m, i * 0.7 * 3600);
		require(f.prompt >= 0.01 && f.prompt <= 100 && f.output >= 0.01 && f.output <= 100);
		require(engine_model_requests_s(m, f) > 0);
	}
	if (m->means.prompts + m->means.outputs < TOKENS_MAX)
		play(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct doc_file doc;
	arena_init(&a, ARENA_BYTES_MAX);
	struct schema_errors *errors = malloc(sizeof *errors);
	require(errors != NULL);
	if (doc_parse_yaml(&a, "f", (const char *)data, size, &doc, NULL) == 0)
		for (size_t i = 0; i < doc.n_roots; i++) {
			struct engine_model m = {0};
			schema_errors_init(errors, "f");
			int rc = engine_model_decode(doc.roots[i], &m, &a, errors);
			require((rc == 0) == (errors->n == 0));
			if (rc == 0)
				check_model(&m);
		}
	struct engine_model lengths = {.kv_tokens = 100000};
	struct err e = {0};
	if (engine_model_parse_samples((const char *)data, size, "f", &lengths, &a, &e) == 0)
		check_samples(&lengths);
	else
		require(e.kind != ERR_NONE);
	free(errors);
	arena_done(&a);
	return 0;
}
