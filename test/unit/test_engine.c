// SPDX-License-Identifier: Apache-2.0
// Simulated inference engines: requests and tokens are conserved, limits hold, times are what can be worked out by
// hand, and a full replica does what the closed form says; and the files that describe them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "replay/engine.h"
#include "replay/score.h"

#define HEAD "apiVersion: gpuscale.dev/v1alpha1\nkind: EngineModel\n"
// Metrics without age and noise, of the last step.
#define EXACT "metrics: {window: 1s, age: 0s, tokensPerSecond: 1000"

struct rig {
	struct arena arena;
	struct engine_model model;
	struct engine_setup setup;
	struct engine *engine;
	struct score score;
};

static void load(struct rig *r, const char *text)
{
	struct doc_file doc;
	struct schema_errors errors;
	struct buf report;
	memset(r, 0, sizeof *r);
	arena_init(&r->arena, 16 * 1024 * 1024);
	schema_errors_init(&errors, "engine.yaml");
	buf_init(&report, 65536);
	assert_int_equal(doc_parse_yaml(&r->arena, "engine.yaml", text, strlen(text), &doc, NULL), 0);
	if (engine_model_decode(doc.roots[0], &r->model, &r->arena, &errors) < 0) {
		schema_errors_print(&errors, &report);
		fail_msg("%s", buf_str(&report));
	}
	buf_done(&report);
	r->setup = (struct engine_setup){&r->model, 0, 10};
	r->engine = engine_new(&r->setup, 7, 1000);
	score_init(&r->score, true);
}

static void done(struct rig *r)
{
	engine_free(r->engine);
	arena_done(&r->arena);
}

// One second in which `requests` arrive, with ready replicas.
static void step(struct rig *r, int32_t ready, double requests)
{
	assert_int_equal(engine_step(r->engine, ready, requests / r->model.max_requests_s, &r->score), 0);
}

static double value(const struct rig *r, enum engine_metric metric)
{
	return engine_history_read(engine_history(r->engine), metric);
}

// The newest sample.
static const struct engine_sample *totals(const struct rig *r)
{
	const struct engine_history *h = engine_history(r->engine);
	return &h->samples[(h->n - 1) % ENGINE_HISTORY];
}

// ---- by hand ----

static void first_token_of_an_idle_engine_takes_the_prompt(void **state)
{
	(void)state;
	struct rig r;
	load(&r,
	     HEAD "prefillTokensPerSecond: 1000\n"
	          "decode: {stepMicroseconds: 10000, perSequenceMicroseconds: 2000, perThousandTokensMicroseconds: 0}\n"
	          "requests: {arrivals: Requests, samples: [{prompt: 3000, output: 101}]}\n");
	assert_true(r.model.means.prompts == 3000);
	step(&r, 1, 1);
	for (int i = 0; i < 9; i++)
		step(&r, 1, 0);
	// 3 s for 3000 tokens, in two parts of at most 2048 each; then 100 steps of 12 ms.
	assert_true(r.score.requests == 1);
	assert_true(fabs(score_wait_quantile_s(&r.score, 0.5) / 3 - 1) < 0.02);
	assert_true(r.score.token_gaps == 100);
	assert_true(fabs(score_token_gap_quantile_s(&r.score, 0.5) / 0.012 - 1) < 0.02);
	const struct engine_sample *t = totals(&r);
	assert_true(t->prompt_tokens == 3000 && t->generation_tokens == 101 && t->finished == 1 && t->late == 0);
	done(&r);
}

static void sequences_are_limited(void **state)
{
	(void)state;
	struct rig r;
	load(&r, HEAD "maxSequences: 8\nrequests: {arrivals: Requests, samples: [{prompt: 10, output: 1000}]}\n" EXACT
	              "}\n");
	bool was_full = false;
	for (int i = 0; i < 60; i++) {
		step(&r, 2, 2);
		double running = i < 1 ? 0 : value(&r, ENGINE_RUNNING), waiting = i < 1 ? 0 : value(&r, ENGINE_WAITING);
		assert_true(running <= 16);

		was_full = was_full || waiting > 0;
		if (i > 0)
			assert_true(fabs(value(&r, ENGINE_UTILIZATION) - running / 16) < 1e-9);
	}
	assert_true(was_full);
	done(&r);
}

static void kv_cache_is_limited(void **state)
{
	(void)state;
	struct rig r;
	load(&r, HEAD "kvTokens: 5000\nrequests: {arrivals: Requests, samples: [{prompt: 500, output: 500}]}\n" EXACT
	              "}\n");
	bool was_full = false;
	for (int i = 0; i < 60; i++) {
		step(&r, 1, 2);
		if (i < 1)
			continue;
		assert_true(value(&r, ENGINE_RUNNING) <= 5); // of 1000 tokens each
		assert_true(value(&r, ENGINE_KV_USAGE) <= 1);
		was_full = was_full || (value(&r, ENGINE_WAITING) > 0 && value(&r, ENGINE_RUNNING) == 5);
	}
	assert_true(was_full);
	done(&r);
}

static void requests_go_to_the_replica_with_the_fewest(void **state)
{
	(void)state;
	struct rig r;
	load(&r, HEAD "maxSequences: 4\nrequests: {arrivals: Requests, samples: [{prompt: 10, output: 20000}]}\n" EXACT
	              "}\n");
	step(&r, 1, 3);
	step(&r, 2, 3); // the new replica has none: it gets all three
	step(&r, 2, 0);
	assert_true(value(&r, ENGINE_RUNNING) == 6 && value(&r, ENGINE_WAITING) == 0);
	done(&r);
}

// ---- laws ----

static const char *const mixed =
        HEAD "maxSequences: 16\nkvTokens: 20000\nrequests: {prompt: {mean: 700}, output: {mean: 90}, "
             "byHour: [{hour: 0, output: \"0.5\"}, {hour: 1, prompt: 2, output: 2}]}\n" EXACT "}\n";

static void requests_and_tokens_are_conserved(void **state)
{
	(void)state;
	static const int32_t ready[] = {2, 5, 1, 0, 3, 1};
	struct rig r;
	load(&r, mixed);
	const struct engine_sample *t = NULL;
	for (int i = 0; i < 600; i++) {
		step(&r, ready[i / 100], 6);
		t = totals(&r);
		if (i < 1)
			continue;
		double open = value(&r, ENGINE_IN_FLIGHT);
		assert_true(t->arrived == t->finished + open);
		assert_true(t->first_tokens <= t->arrived && t->late <= t->first_tokens);
	}
	assert_true(t->arrived > 3000 && t->late > 0);
	for (int i = 0; i < 2000; i++)
		step(&r, 1, 0);
	t = totals(&r);
	assert_true(value(&r, ENGINE_IN_FLIGHT) == 0);
	assert_true(t->finished == t->arrived && t->first_tokens == t->arrived && t->refused == 0);
	assert_true(t->prompt_tokens + t->generation_tokens == t->arrived_tokens);
	assert_true(r.score.requests == t->arrived && r.score.late == t->late);
	assert_true(r.score.token_gaps + t->arrived == t->generation_tokens);
	done(&r);
}

static void removed_replicas_finish_their_requests(void **state)
{
	(void)state;
	struct rig r;
	load(&r, HEAD "maxSequences: 4\nrequests: {arrivals: Requests, samples: [{prompt: 10, output: 500}]}\n" EXACT
	              "}\n");
	step(&r, 3, 30);
	step(&r, 1, 0);
	assert_int_equal(engine_draining(r.engine), 2);
	assert_true(value(&r, ENGINE_RUNNING) == 12 && value(&r, ENGINE_WAITING) == 18);
	for (int i = 0; i < 9; i++)
		step(&r, 1, 0);
	assert_int_equal(engine_draining(r.engine), 0); // 500 tokens take 7 s
	assert_true(totals(&r)->finished >= 12);
	done(&r);
}

static void requests_wait_at_the_gateway_without_replicas(void **state)
{
	(void)state;
	struct rig r;
	load(&r, HEAD "requests: {arrivals: Requests, samples: [{prompt: 10, output: 10}]}\n" EXACT "}\n");
	for (int i = 0; i < 20; i++)
		step(&r, 0, 2);
	assert_true(value(&r, ENGINE_WAITING) == 40 && r.score.requests == 0);
	assert_true(fabs(engine_history_now(engine_history(r.engine)).wait_s - 19.75) < 1e-6);
	engine_score_waiting(r.engine, &r.score);
	assert_true(r.score.late == r.score.requests && r.score.late >= 18 && r.score.late <= 20); // older than 10 s
	done(&r);
}

// The throughput of a replica that is never short of requests, by the closed form and in the simulation.
static void saturated_replica_does_what_the_closed_form_says(void **state)
{
	(void)state;
	static const char *const models[] = {
	        "requests: {prompt: {mean: 800, sigma: 0}, output: {mean: 200, sigma: 0}}\n",
	        "maxSequences: 32\n",
	        "kvTokens: 30000\n",
	        "maxBatchedTokens: 300\nmaxSequences: 128\n",
	        "requests: {prompt: {mean: 3000}, output: {mean: 20}}\n",
	        "requests: {samples: [{prompt: 100, output: 900}, {prompt: 2000, output: 1}]}\n",
	        "prefillTokensPerSecond: 40000\nrequests: {byHour: [{hour: 0, prompt: \"1.5\", output: \"0.7\"}]}\n",
	};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct rig r;
		char text[1024];
		snprintf(text, sizeof text, HEAD "%s", models[i]);
		load(&r, text);
		double rate = engine_model_requests_s(&r.model, engine_model_factors(&r.model, 0));
		for (int s = 0; s < 200; s++)
			step(&r, 1, 1.5 * r.model.max_requests_s);
		double before = totals(&r)->finished;
		for (int s = 0; s < 1000; s++)
			step(&r, 1, 1.5 * r.model.max_requests_s);
		double measured = (totals(&r)->finished - before) / 1000;
		if (fabs(measured / rate - 1) > 0.04)
			fail_msg("%s: measured %.3f requests/s, closed form %.3f", models[i], measured, rate);
		done(&r);
	}
}

static void equal_seeds_give_equal_runs(void **state)
{
	(void)state;
	struct rig a, b;
	load(&a, mixed);
	load(&b, mixed);
	for (int i = 0; i < 300; i++) {
		step(&a, 1 + i / 100, 8);
		step(&b, 1 + i / 100, 8);
	}
	assert_memory_equal(totals(&a), totals(&b), sizeof(struct engine_sample));
	assert_memory_equal(&a.score, &b.score, sizeof a.score);
	done(&a);
	done(&b);
}

// ---- metrics ----

static void metrics_are_rates_of_the_window_and_old(void **state)
{
	(void)state;
	struct rig r;
	load(&r, HEAD "requests: {arrivals: Requests, samples: [{prompt: 100, output: 1}]}\n"
	              "metrics: {window: 20s, age: 10s, tokensPerSecond: 101}\n");
	for (int i = 0; i < 11; i++) {
		step(&r, 1, 2);
		assert_true(isnan(value(&r, ENGINE_DEMAND))); // not two samples of that age
	}
	for (int i = 0; i < 40; i++)
		step(&r, 1, 2);
	assert_true(fabs(value(&r, ENGINE_DEMAND) - 2) < 1e-9);
	assert_true(fabs(value(&r, ENGINE_PROMPT_TOKENS) - 200) < 1e-9);
	assert_true(fabs(value(&r, ENGINE_GENERATION_TOKENS) - 2) < 1e-9);
	assert_true(fabs(value(&r, ENGINE_ARRIVING_TOKENS) - 202) < 1e-9);
	assert_true(value(&r, ENGINE_LATE_FIRST_TOKENS) == 0);
	for (int i = 0; i < 10; i++)
		step(&r, 1, 0);
	assert_true(fabs(value(&r, ENGINE_DEMAND) - 2) < 1e-9); // 10 s old
	for (int i = 0; i < 10; i++)
		step(&r, 1, 0);
	assert_true(fabs(value(&r, ENGINE_DEMAND) - 1) < 1e-9); // half of the window
	for (int i = 0; i < 10; i++)
		step(&r, 1, 0);
	assert_true(value(&r, ENGINE_DEMAND) == 0 && isnan(value(&r, ENGINE_LATE_FIRST_TOKENS)));
	done(&r);
}

static void noise_has_the_stated_size(void **state)
{
	(void)state;
	struct rig r;
	double n = 0, sum = 0, squares = 0;
	load(&r, HEAD "requests: {arrivals: Requests, samples: [{prompt: 100, output: 1}]}\n"
	              "metrics: {window: 20s, age: 0s, tokensPerSecond: 101, noise: \"0.05\"}\n");
	for (int i = 0; i < 4000; i++) {
		step(&r, 1, 2);
		if (i < 30)
			continue;
		double error = value(&r, ENGINE_DEMAND) / 2 - 1;
		n++;
		sum += error;
		squares += error * error;
	}
	assert_true(fabs(sum / n) < 0.005);
	assert_true(fabs(sqrt(squares / n) - 0.05) < 0.005);
	done(&r);
}

// ---- files ----

static void faults_name_field_and_fix(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
	        {"maxSequences: 0\n", "engine.yaml:3:15: maxSequences: "},
	        {"maxSequences: 64\nmaxBatchedTokens: 64\n", "engine.yaml:4:19: maxBatchedTokens: must be larger than "
	                                                     "maxSequences: no prompt would ever be computed"},
	        {"kvTokens: 100\nrequests: {samples: [{prompt: 90, output: 20}]}\n",
	         "requests.samples[0]: has more tokens than kvTokens"},
	        {"requests: {file: a.csv, samples: [{prompt: 90, output: 20}]}\n",
	         "cannot be used together with samples"},
	        {"requests: {byHour: [{hour: 5}, {hour: 5}]}\n", "requests.byHour[1]: must have a later hour"},
	        {"metrics: {signals: [{metric: demand, name: a}, {metric: demand, name: b}]}\n", "repeats a metric"},
	        {"metrics: {signals: [{metric: queue, name: a}]}\n", "metrics.signals[0].metric: "},
	        {"prefilTokensPerSecond: 5\n", "did you mean prefillTokensPerSecond"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena a;
		struct doc_file doc;
		struct schema_errors errors;
		struct engine_model m = {0};
		struct buf report;
		char text[512];
		snprintf(text, sizeof text, HEAD "%s", cases[i].text);
		arena_init(&a, 16 * 1024 * 1024);
		buf_init(&report, 65536);
		schema_errors_init(&errors, "engine.yaml");
		assert_int_equal(doc_parse_yaml(&a, "engine.yaml", text, strlen(text), &doc, NULL), 0);
		assert_int_equal(engine_model_decode(doc.roots[0], &m, &a, &errors), -1);
		schema_errors_print(&errors, &report);
		if (!strstr(buf_str(&report), cases[i].want))
			fail_msg("%s: got %s", cases[i].text, buf_str(&report));
		buf_done(&report);
		arena_done(&a);
	}
}

static void lengths_are_read_from_csv(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
	        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,374,44\r\n\n\"x\", 396 ,109", NULL},
	        {"", "a.csv:1: expected a header"},
	        {"ContextTokens,GeneratedTokens\n", "a.csv: has no requests"},
	        {"ContextTokens,Generated\n1,2\n", "a.csv:1: expected a header"},
	        {"ContextTokens,GeneratedTokens\n1,2\n3\n", "a.csv:3: expected whole numbers"},
	        {"ContextTokens,GeneratedTokens\n0,2\n", "a.csv:2: expected whole numbers"},
	        {"ContextTokens,GeneratedTokens\n1.5,2\n", "a.csv:2: expected whole numbers"},
	        {"ContextTokens,GeneratedTokens\n1,2\n900,200\n",
	         "a.csv:3: the request has more tokens than kvTokens, 1000"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena a;
		struct err e = {0};
		struct engine_model m = {.kv_tokens = 1000};
		arena_init(&a, 1024 * 1024);
		int rc = engine_model_parse_samples(cases[i].text, strlen(cases[i].text), "a.csv", &m, &a, &e);
		assert_int_equal(rc, cases[i].want ? -1 : 0);
		if (cases[i].want && !strstr(e.msg, cases[i].want))
			fail_msg("got %s", e.msg);
		if (!cases[i].want) {
			assert_int_equal(m.n_samples, 2);
			assert_int_equal(m.samples[0].prompt, 374);
			assert_int_equal(m.samples[1].output, 109);
		}
		arena_done(&a);
	}
}

static void drawn_lengths_have_the_stated_mean(void **state)
{
	(void)state;
	struct rig r;
	load(&r, HEAD "requests: {prompt: {mean: 1200, sigma: 1}, output: {mean: 300, sigma: \"0.5\"}}\n");
	assert_true(fabs(r.model.means.prompts / 1200 - 1) < 0.01);
	assert_true(fabs(r.model.means.outputs / 300 - 1) < 0.01);
	struct engine_factors f = engine_model_factors(&r.model, 12345);
	assert_true(f.prompt == 1 && f.output == 1);
	done(&r);
	load(&r, HEAD "requests: {byHour: [{hour: 2, prompt: 1}, {hour: 14, prompt: 3}]}\n");
	static const struct {
		double hour, want;
	} cases[] = {{2, 1}, {8, 2}, {14, 3}, {20, 2}, {1, 7.0 / 6}, {26, 1}, {24 * 365 + 14, 3}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_true(fabs(engine_model_factors(&r.model, cases[i].hour * 3600).prompt - cases[i].want) < 1e-9);
	done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(first_token_of_an_idle_engine_takes_the_prompt),
	        cmocka_unit_test(sequences_are_limited),
	        cmocka_unit_test(kv_cache_is_limited),
	        cmocka_unit_test(requests_go_to_the_replica_with_the_fewest),
	        cmocka_unit_test(requests_and_tokens_are_conserved),
	        cmocka_unit_test(removed_replicas_finish_their_requests),
	        cmocka_unit_test(requests_wait_at_the_gateway_without_replicas),
	        cmocka_unit_test(saturated_replica_does_what_the_closed_form_says),
	        cmocka_unit_test(equal_seeds_give_equal_runs),
	        cmocka_unit_test(metrics_are_rates_of_the_window_and_old),
	        cmocka_unit_test(noise_has_the_stated_size),
	        cmocka_unit_test(faults_name_field_and_fix),
	        cmocka_unit_test(lengths_are_read_from_csv),
	        cmocka_unit_test(drawn_lengths_have_the_stated_mean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
