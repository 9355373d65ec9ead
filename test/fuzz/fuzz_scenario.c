// SPDX-License-Identifier: Apache-2.0
// Files of kind PolicyTest: any bytes are refused with a place or played; the engine keeps its laws while they play.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/load/file_set.h"
#include "policies/test/scenario.h"
#include "policies/test/test_report.h"

#define INPUT_MAX  8192
#define MEMORY_MAX (64 * 1024 * 1024)
#define TICKS_MAX  300 // played; longer ones are only bound
#define TESTS_MAX  20

static const struct policy_signal signals[] = {
        {.name = "queue",
         .query = "q",
         .watermarks = {.set = true, .high = 8, .low = 2, .tolerance_ratio = 0.1, .algorithm = WATERMARK_ABSOLUTE},
         .sustain = {.up_ms = 30000, .down_ms = 60000},
         .stale_after_ms = 60000},
        {.name = "load",
         .query = "q",
         .target = {.set = true, .type = TARGET_VALUE, .value = 0.5, .tolerance_ratio = 0.1},
         .window = {.set = true, .duration_ms = 60000, .aggregate = WINDOW_AVG, .min_samples = 2},
         .series = SERIES_MAX,
         .on_missing = ON_MISSING_IGNORE,
         .stale_after_ms = 60000},
};
static const struct policy policy = {.namespace_name = "serving",
                                     .name = "llama",
                                     .min_replicas = 1,
                                     .max_replicas = 100,
                                     .replica_multiple = 1,
                                     .interval_ms = 15000,
                                     .signals = signals,
                                     .n_signals = 2,
                                     .scale_down = {.stabilization_window_ms = 60000},
                                     .cooldown = {.up_ms = 30000, .down_ms = 60000}};

static bool is_short(const struct scenario *s)
{
	for (size_t i = 0; i < s->n_expect; i++)
		if (s->expect[i].at_ms / s->interval_ms > TICKS_MAX)
			return false;
	for (size_t i = 0; i < policy.n_signals; i++)
		for (size_t k = 0; k < s->signals[i].n_series; k++)
			if (s->signals[i].series[k].n > TICKS_MAX)
				return false;
	return true;
}

static void play(const struct scenario *s, struct coverage_list *coverage, struct arena *a)
{
	struct scenario_result result;
	struct err e;
	if (scenario_run(s, coverage_of(coverage, &policy), a, &result, &e) < 0) {
		assert(e.kind == ERR_LIMIT);
		return;
	}
	for (size_t i = 0; i < result.n; i++) // the others hold for every load; NoFlap depends on it
		assert(!result.findings[i].law || strcmp(result.findings[i].law, "NoFlap") == 0);
	struct buf out;
	buf_init(&out, 1 << 20);
	test_report_findings(&out, &(struct test_style){.diff = result.n % 2}, "fuzz", &result);
	buf_done(&out);
}

static void run_document(const struct doc_node *root, struct coverage_list *coverage, struct arena *a,
                         struct schema_errors *errors)
{
	struct scenario_file f = {0};
	const struct policy *policies[] = {&policy};
	const struct file_set set = {.policies = policies, .n_policies = 1};
	schema_errors_init(errors, "fuzz");
	if (schema_decode(&scenario_schema, root, &f, a, errors, "") < 0) {
		assert(errors->n > 0);
		return;
	}
	const struct doc_node *node = doc_get(root, "tests")->child;
	for (size_t i = 0; i < f.n_tests && i < TESTS_MAX; i++, node = node->next) {
		schema_errors_init(errors, "fuzz");
		if (scenario_bind(&f.tests[i], node, i, f.interval_ms, &set, a, errors) < 0)
			assert(errors->n > 0 && errors->items[0].line > 0);
		else if (is_short(&f.tests[i]))
			play(&f.tests[i], coverage, a);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > INPUT_MAX)
		return 0;
	struct arena a;
	struct doc_file doc;
	struct err e;
	struct coverage_list coverage = {0};
	struct schema_errors *errors = malloc(sizeof *errors);
	assert(errors);
	arena_init(&a, MEMORY_MAX);
	if (doc_parse_yaml(&a, "fuzz", (const char *)data, size, &doc, &e) == 0)
		for (size_t i = 0; i < doc.n_roots; i++)
			run_document(doc.roots[i], &coverage, &a, errors);
	struct buf out;
	buf_init(&out, 1 << 20);
	coverage_print(&coverage, &out);
	buf_done(&out);
	coverage_done(&coverage);
	arena_done(&a);
	free(errors);
	return 0;
}
