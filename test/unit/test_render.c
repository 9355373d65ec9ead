// SPDX-License-Identifier: Apache-2.0
// Every sentence of the reason table renders without a leftover placeholder, and a decision looks the same in every
// format.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cli/objects/policy_render.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/explain/explain.h"
#include "policies/schema/binding.h"

static const struct policy_signal signal_q = {.name = "queue", .query = "q"};
static const struct scale_target target = {"apps/v1", "Deployment", "llama", NULL};
static const struct policy policy_x = {.namespace_name = "serving",
                                       .name = "llama",
                                       .min_replicas = 1,
                                       .max_replicas = 16,
                                       .signals = &signal_q,
                                       .n_signals = 1};

static struct decision sample(void)
{
	struct decision d = {.time_ms = 1767603600000,
	                     .current = 2,
	                     .ready = -1,
	                     .desired = 4,
	                     .action = ACTION_SCALE_UP,
	                     .reason = REASON_SCALE_UP_LIMIT,
	                     .driver = 1,
	                     .write = true,
	                     .min_replicas = 1,
	                     .max_replicas = 16,
	                     .n_signals = 1,
	                     .n_trace = 2};
	d.signals[0] = (struct decision_signal){SIGNAL_OK, REASON_ABOVE_HIGH_WATERMARK, 10, 40, 8, 1500};
	d.entries[0] = (struct trace_entry){.stage = STAGE_SIGNALS,
	                                    .reason = REASON_ABOVE_HIGH_WATERMARK,
	                                    .signal = 0,
	                                    .before = 2,
	                                    .after = 10,
	                                    .value = 40,
	                                    .limit = 8};
	d.entries[1] = (struct trace_entry){.stage = STAGE_RATE,
	                                    .reason = REASON_SCALE_UP_LIMIT,
	                                    .signal = -1,
	                                    .before = 10,
	                                    .after = 4,
	                                    .limit = 4};
	return d;
}

static void every_reason_has_a_sentence_without_leftovers(void **state)
{
	(void)state;
	const char *const details[] = {"connection refused"};
	struct decision d = sample();
	struct decided decided = {.policy = &policy_x, .target = &target, .decision = &d, .details = details};
	for (int r = REASON_NONE + 1; r < REASON__COUNT; r++) {
		struct trace_entry t = {
		        .reason = (enum reason)r, .value = 0.7, .limit = 2, .before = 1, .after = 3, .count = 5};
		char out[RENDER_SENTENCE_BYTES];
		explain_sentence(&decided, &t, out);
		assert_true(strlen(out) > 10);
		assert_null(strchr(out, '{'));
		assert_null(strchr(out, '}'));
		assert_null(strchr(out, '\n'));
	}
}

static void numbers_in_sentences_are_for_people(void **state)
{
	(void)state;
	struct decision d = sample();
	struct decided decided = {.policy = &policy_x, .target = &target, .decision = &d};
	static const struct {
		double value;
		const char *want;
	} rows[] = {
	        {0.95, "queue is 0.95, above its high watermark 8: 2 -> 10"},
	        {1.0 / 3, "queue is 0.333333, above its high watermark 8: 2 -> 10"},
	        {123456, "queue is 123456, above its high watermark 8: 2 -> 10"},
	        {-0.5, "queue is -0.5, above its high watermark 8: 2 -> 10"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char out[RENDER_SENTENCE_BYTES];
		d.entries[0].value = rows[i].value;
		explain_sentence(&decided, &d.entries[0], out);
		assert_string_equal(out, rows[i].want);
	}
	struct trace_entry nan = {.reason = REASON_NON_FINITE, .signal = 0, .value = NAN};
	char out[RENDER_SENTENCE_BYTES];
	explain_sentence(&decided, &nan, out);
	assert_string_equal(out, "queue is NaN, which is not a finite number");
}

static void starting_replicas_are_named_where_a_signal_proposes(void **state)
{
	(void)state;
	struct decision d = sample();
	struct decided decided = {.policy = &policy_x, .target = &target, .decision = &d};
	struct trace_entry t = {.stage = STAGE_SIGNALS,
	                        .reason = REASON_ABOVE_TARGET,
	                        .before = 7,
	                        .after = 7,
	                        .value = 1,
	                        .limit = 0.6};
	char out[RENDER_SENTENCE_BYTES];
	d.current = 7;
	d.ready = 4;
	explain_sentence(&decided, &t, out);
	assert_string_equal(out, "queue is 1, above its target 0.6: 7 -> 7 (4 of 7 replicas ready, 3 starting)");
	d.ready = 7;
	explain_sentence(&decided, &t, out);
	assert_string_equal(out, "queue is 1, above its target 0.6: 7 -> 7");
	d.ready = -1; // unknown
	explain_sentence(&decided, &t, out);
	assert_string_equal(out, "queue is 1, above its target 0.6: 7 -> 7");
}

static void times_are_rounded_but_never_to_their_limit(void **state)
{
	(void)state;
	struct decision d = sample();
	struct decided decided = {.policy = &policy_x, .target = &target, .decision = &d};
	struct trace_entry t = {.reason = REASON_STALE_DATA, .duration_ms = 125004, .window_ms = 60000};
	char out[RENDER_SENTENCE_BYTES];
	explain_sentence(&decided, &t, out);
	assert_string_equal(out, "the newest sample of queue is 2m5s old, more than 1m");
	t.duration_ms = 60200;
	explain_sentence(&decided, &t, out);
	assert_string_equal(out, "the newest sample of queue is 1m200ms old, more than 1m");
}

static void long_detail_is_cut_not_overrun(void **state)
{
	(void)state;
	char detail[2048];
	memset(detail, 'x', sizeof detail - 1);
	detail[sizeof detail - 1] = '\0';
	const char *const details[] = {detail};
	struct decision d = sample();
	struct decided decided = {.policy = &policy_x, .target = &target, .decision = &d, .details = details};
	struct trace_entry t = {.reason = REASON_QUERY_FAILED, .signal = 0};
	char out[RENDER_SENTENCE_BYTES];
	explain_sentence(&decided, &t, out);
	assert_true(strlen(out) < RENDER_SENTENCE_BYTES);
}

static void render(struct buf *b, enum output_format format)
{
	struct decision d = sample();
	struct decided decided = {.policy = &policy_x, .target = &target, .decision = &d};
	buf_init(b, 1 << 20);
	if (format == OUTPUT_TABLE || format == OUTPUT_WIDE)
		plan_render(b, &decided, 1, format == OUTPUT_WIDE);
	else
		explain_list(b, &decided, 1, format);
	assert_false(b->failed);
}

static void table_shows_the_row_and_the_trace(void **state)
{
	(void)state;
	struct buf b;
	render(&b, OUTPUT_TABLE);
	assert_string_equal(
	        buf_str(&b),
	        "NAMESPACE   NAME    TARGET             CURRENT   DESIRED   ACTION    REASON\n"
	        "serving     llama   Deployment/llama   2         4         ScaleUp   ScaleUpLimit\n"
	        "\n"
	        "serving/llama:\n"
	        "  signals    2 -> 10     AboveHighWatermark     queue is 40, above its high watermark 8: 2 -> 10\n"
	        "  rate       10 -> 4     ScaleUpLimit           10 is wanted, but behavior.scaleUp allows 4 at this "
	        "time\n");
	buf_done(&b);
	render(&b, OUTPUT_NAME);
	assert_string_equal(buf_str(&b), "gpuautoscaler.gpuscale.dev/llama\n");
	buf_done(&b);
}

static void wide_table_says_when_ready_is_not_known(void **state)
{
	(void)state;
	struct buf b;
	render(&b, OUTPUT_WIDE);
	assert_non_null(strstr(buf_str(&b), "Deployment/llama   2         ?       0         1..16   4 "));
	buf_done(&b);
}

static void json_has_every_documented_field(void **state)
{
	(void)state;
	struct buf b;
	render(&b, OUTPUT_JSON);
	static const char *const want[] = {"\"kind\": \"DecisionList\"",
	                                   "\"time\": \"2026-01-05T09:00:00Z\"",
	                                   "\"readyReplicas\": null",
	                                   "\"action\": \"ScaleUp\"",
	                                   "\"reason\": \"ScaleUpLimit\"",
	                                   "\"ageSeconds\": 1.5",
	                                   "\"stage\": \"rate\"",
	                                   "\"message\": \"10 is wanted, but behavior.scaleUp allows 4 at this time\""};
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
		assert_non_null(strstr(buf_str(&b), want[i]));
	buf_done(&b);
}

// The short copy that a reconciler keeps has everything that an explanation needs.
static void kept_decision_renders_like_the_whole_one(void **state)
{
	(void)state;
	struct decision d = sample();
	struct decision *kept = malloc(decision_kept_bytes(&d));
	assert_non_null(kept);
	assert_true(decision_kept_bytes(&d) < sizeof d / 10);
	decision_keep(&d, kept);
	struct decided items[] = {{.policy = &policy_x, .target = &target, .decision = &d},
	                          {.policy = &policy_x, .target = &target, .decision = kept}};
	struct buf texts[2];
	for (size_t i = 0; i < 2; i++) {
		buf_init(&texts[i], 65536);
		explain_list(&texts[i], &items[i], 1, OUTPUT_JSON);
		plan_render(&texts[i], &items[i], 1, false);
	}
	assert_true(texts[0].len > 0);
	assert_string_equal(buf_str(&texts[0]), buf_str(&texts[1]));
	buf_done(&texts[0]);
	buf_done(&texts[1]);
	free(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_reason_has_a_sentence_without_leftovers),
	        cmocka_unit_test(numbers_in_sentences_are_for_people),
	        cmocka_unit_test(starting_replicas_are_named_where_a_signal_proposes),
	        cmocka_unit_test(times_are_rounded_but_never_to_their_limit),
	        cmocka_unit_test(long_detail_is_cut_not_overrun),
	        cmocka_unit_test(table_shows_the_row_and_the_trace),
	        cmocka_unit_test(wide_table_says_when_ready_is_not_known),
	        cmocka_unit_test(json_has_every_documented_field),
	        cmocka_unit_test(kept_decision_renders_like_the_whole_one),
	};
	return cmocka_run_group_tests_name("render", tests, NULL, NULL);
}
