// SPDX-License-Identifier: Apache-2.0
// The line filter: every line gets one answer, bad ones change nothing, and changed replicas record a
// scale.
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
#include "base/json/json_read.h"
#include "policies/schema/binding.h"
#include "policies/test/filters.h"
#include "test/support/engine.h"

static const struct scale_target target = {"apps/v1", "Deployment", "llama", NULL};

#define N(a) (sizeof(a) / sizeof((a)[0]))

// Two signals, no limits.
static void make_policy(struct engine *e)
{
	engine_init(e, 1);
	engine_add_replicas(e, "want");
	engine_add_value(e, "load", 0.5);
	e->policy.namespace_name = "serving";
	e->policy.name = "llama";
	for (size_t i = 0; i < e->policy.n_signals; i++)
		e->signals[i].on_missing = ON_MISSING_IGNORE;
}

// ---- the line ----

static void observation_is_read(void **state)
{
	(void)state;
	struct engine en;
	struct arena a;
	struct err e;
	struct step_line line;
	make_policy(&en);
	arena_init(&a, 1 << 20);
	const char *text =
	        "{\"time\": 12.3456, \"replicas\": 3, \"ready\": 2, \"pending\": 1, \"status\": 4, "
	        "\"signals\": {\"load\": {\"pod-b\": 0.5, \"pod-c\": null, \"pod-a\": \"NaN\"}, \"want\": -1e3}}";
	assert_int_equal(step_line_parse(&en.policy, text, strlen(text), &a, &line, &e), 0);
	assert_int_equal(line.time_ms, 12346);
	assert_int_equal(line.observation.spec_replicas, 3);
	assert_int_equal(line.observation.ready_replicas, 2);
	assert_int_equal(line.observation.pending_replicas, 1);
	assert_int_equal(line.observation.status_replicas, 4);
	assert_int_equal(line.signals[0].n_series, 1);
	assert_string_equal(line.signals[0].series[0].pod, "");
	assert_true(line.signals[0].series[0].value == -1000);
	assert_int_equal(line.signals[1].n_series, 2);
	assert_string_equal(line.signals[1].series[0].pod, "pod-a");
	assert_true(isnan(line.signals[1].series[0].value));
	assert_string_equal(line.signals[1].series[1].pod, "pod-b");
	assert_int_equal(line.signals[1].series[1].time_ms, 12346);
	arena_done(&a);
}

static void pods_have_states(void **state)
{
	(void)state;
	struct engine en;
	struct arena a;
	struct err e;
	struct step_line line;
	make_policy(&en);
	arena_init(&a, 1 << 20);
	const char *text = "{\"time\":0,\"replicas\":3,\"pods\":{\"a\":\"Ready\",\"b\":\"Unready\",\"c\":\"Pending\","
	                   "\"d\":\"Failed\",\"e\":\"Deleted\"}}";
	assert_int_equal(step_line_parse(&en.policy, text, strlen(text), &a, &line, &e), 0);
	assert_int_equal(line.observation.n_pods, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(line.observation.pods[i].name[0], "abcde"[i]);
		assert_int_equal(line.observation.pods[i].state, i);
	}
	text = "{\"time\":0,\"replicas\":3,\"pods\":{}}";
	assert_int_equal(step_line_parse(&en.policy, text, strlen(text), &a, &line, &e), 0);
	assert_true(line.observation.pods && line.observation.n_pods == 0);
	text = "{\"time\":0,\"replicas\":3}";
	assert_int_equal(step_line_parse(&en.policy, text, strlen(text), &a, &line, &e), 0);
	assert_null(line.observation.pods);
	text = "{\"time\":0,\"replicas\":3,\"pods\":{\"a\":\"ready\"}}";
	assert_int_equal(step_line_parse(&en.policy, text, strlen(text), &a, &line, &e), -1);
	assert_string_equal(e.msg, "unknown state of a pod \"ready\", did you mean \"Ready\"?");
	arena_done(&a);
}

static void omitted_fields_are_unknown(void **state)
{
	(void)state;
	struct engine en;
	struct arena a;
	struct err e;
	struct step_line line;
	make_policy(&en);
	arena_init(&a, 1 << 20);
	static const char *const texts[] = {
	        "{\"time\":0,\"replicas\":3}",
	        "{\"time\":0,\"replicas\":3,\"ready\":null,\"pending\":null,\"status\":null,\"signals\":null}",
	        "{\"time\":0,\"replicas\":3,\"signals\":{\"load\":null,\"want\":{}}}",
	        "{\"time\":0,\"replicas\":3,\"signals\":{\"load\":{\"a\":null}}}",
	};
	for (size_t i = 0; i < N(texts); i++) {
		assert_int_equal(step_line_parse(&en.policy, texts[i], strlen(texts[i]), &a, &line, &e), 0);
		assert_int_equal(line.observation.ready_replicas, -1);
		assert_int_equal(line.observation.pending_replicas, 0);
		assert_int_equal(line.observation.status_replicas, 3);
		assert_int_equal(line.signals[0].state, OBS_EMPTY);
		assert_int_equal(line.signals[1].state, OBS_EMPTY);
	}
	const char *failed =
	        "{\"time\":0,\"replicas\":3,\"signals\":{\"load\":{\"error\":\"timeout\"},\"want\":{\"error\":1}}}";
	assert_int_equal(step_line_parse(&en.policy, failed, strlen(failed), &a, &line, &e), 0);
	assert_int_equal(line.signals[0].state, OBS_OK); // a series that is called error
	assert_int_equal(line.signals[1].state, OBS_FAILED);
	assert_string_equal(line.details[1], "timeout");
	arena_done(&a);
}

static void bad_line_is_refused_with_its_reason(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} rows[] = {
	        {"", "the text ends early"},
	        {"{\"time\":0", "expected ',' or '}'"},
	        {"[]", "a line must be an object"},
	        {"{\"replicas\":1}", "time is missing"},
	        {"{\"time\":0}", "replicas is missing"},
	        {"{\"time\":-1,\"replicas\":1}", "time must be a number of seconds"},
	        {"{\"time\":\"now\",\"replicas\":1}", "time must be a number of seconds"},
	        {"{\"time\":1e99,\"replicas\":1}", "time must be a number of seconds"},
	        {"{\"time\":0,\"replicas\":1.5}", "replicas must be a whole number from 0 to 1000000"},
	        {"{\"time\":0,\"replicas\":1000001}", "replicas must be a whole number"},
	        {"{\"time\":0,\"replicas\":1,\"ready\":true}", "ready must be a whole number"},
	        {"{\"time\":0,\"replicas\":1,\"replicas\":2}", "replicas is given twice"},
	        {"{\"time\":0,\"replica\":1}", "unknown member \"replica\", did you mean \"replicas\"?"},
	        {"{\"time\":0,\"replicas\":1,\"\\u001b[2J\":1}", "unknown member \"\\x1b[2J\""},
	        {"{\"time\":0,\"replicas\":1,\"signals\":[1]}", "signals must be an object"},
	        {"{\"time\":0,\"replicas\":1,\"signals\":{\"laod\":1}}",
	         "unknown signal \"laod\", did you mean \"load\"?"},
	        {"{\"time\":0,\"replicas\":1,\"signals\":{\"requests\":1}}", "unknown signal \"requests\""},
	        {"{\"time\":0,\"replicas\":1,\"capacity\":{\"fit\":1,\"fit\":2}}", "fit is given twice"},
	        {"{\"time\":0,\"replicas\":1,\"signals\":{\"load\":1,\"load\":2}}", "signal load is given twice"},
	        {"{\"time\":0,\"replicas\":1,\"pods\":{\"b\":\"Ready\",\"a\":\"Ready\",\"b\":\"Ready\"}}",
	         "pod \"b\" is given twice"},
	        {"{\"time\":0,\"replicas\":1,\"signals\":{\"load\":\"much\"}}",
	         "a value of signal load must be a number"},
	        {"{\"time\":0,\"replicas\":1,\"signals\":{\"load\":[1]}}", "a value of signal load must be a number"},
	        {"{\"time\":0,\"replicas\":1,\"signals\":{\"load\":{\"a\":1,\"b\":2,\"a\":3}}}",
	         "has series \"a\" twice"},
	        {"{\"time\":0,\"replicas\":1,\"signals\":{\"load\":{\"a\":{}}}}",
	         "a value of signal load must be a number"},
	};
	struct engine en;
	struct arena a;
	struct err e;
	struct step_line line;
	make_policy(&en);
	arena_init(&a, 1 << 20);
	for (size_t i = 0; i < N(rows); i++) {
		assert_int_equal(step_line_parse(&en.policy, rows[i].text, strlen(rows[i].text), &a, &line, &e), -1);
		if (!strstr(e.msg, rows[i].want))
			fail_msg("%s\n  got:  %s\n  want: %s", rows[i].text, e.msg, rows[i].want);
	}
	arena_done(&a);
}

static void series_have_a_ceiling(void **state)
{
	(void)state;
	struct engine en;
	struct arena a;
	struct err e;
	struct step_line line;
	struct buf b;
	make_policy(&en);
	arena_init(&a, 16 << 20);
	for (int n = STEP_SERIES_MAX; n <= STEP_SERIES_MAX + 1; n++) {
		buf_init(&b, 1 << 20);
		buf_puts(&b, "{\"time\":0,\"replicas\":1,\"signals\":{\"load\":{");
		for (int i = 0; i < n; i++)
			buf_printf(&b, "%s\"pod-%d\":1", i ? "," : "", i);
		buf_puts(&b, "}}}");
		assert_false(b.failed);
		assert_int_equal(step_line_parse(&en.policy, buf_str(&b), b.len, &a, &line, &e),
		                 n > STEP_SERIES_MAX ? -1 : 0);
		buf_done(&b);
	}
	assert_non_null(strstr(e.msg, "10001 series, the ceiling is 10000"));
	char *long_line = calloc(1, STEP_LINE_BYTES_MAX + 2);
	assert_non_null(long_line);
	memset(long_line, ' ', STEP_LINE_BYTES_MAX + 1);
	assert_int_equal(step_line_parse(&en.policy, long_line, STEP_LINE_BYTES_MAX + 1, &a, &line, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	free(long_line);
	arena_done(&a);
}

// ---- the filter ----

// Answers one line; *ret_desired is -1 when the answer is an error. The text stays in `out`.
static int ask(struct step *s, struct buf *out, const char *line, int *ret_desired, char *ret_reason, size_t size)
{
	struct err e;
	buf_reset(out);
	int rc = step_answer(s, line, strlen(line), out, &e);
	assert_false(out->failed);
	assert_true(out->len > 0 && strchr(buf_str(out), '\n') == buf_str(out) + out->len - 1);
	cJSON *tree = json_read(buf_str(out), out->len, &e);
	assert_non_null(tree);
	int64_t desired = -1;
	assert_true(json_get_i64(tree, "desiredReplicas", 0, INT32_MAX, &desired, &e) >= 0);
	*ret_desired = (int)desired;
	snprintf(ret_reason, size, "%s", json_get_str(tree, "reason", json_get_str(tree, "error", "?")));
	cJSON_Delete(tree);
	return rc;
}

static void replicas_that_change_are_a_scale_at_the_time_of_the_line_before(void **state)
{
	(void)state;
	struct engine en;
	make_policy(&en);
	en.policy.cooldown.up_ms = 60000;
	struct step *s = step_new(&(struct binding){.policy = &en.policy, .target = &target});
	struct buf out;
	buf_init(&out, 1 << 20);
	static const struct {
		const char *line;
		int desired;
		const char *reason;
	} rows[] = {
	        {"{\"time\":0,\"replicas\":1,\"signals\":{\"want\":1}}", 1, "DesiredWithinRange"},
	        {"{\"time\":15,\"replicas\":1,\"signals\":{\"want\":5}}", 5, "DesiredWithinRange"},
	        {"{\"time\":30,\"replicas\":1,\"signals\":{\"want\":5}}", 5, "DesiredWithinRange"}, // not carried out
	        {"{\"time\":45,\"replicas\":5,\"signals\":{\"want\":9}}", 5, "CooldownActive"},     // scaled at 30
	        {"{\"time\":89,\"replicas\":5,\"signals\":{\"want\":9}}", 5, "CooldownActive"},
	        {"{\"time\":90,\"replicas\":5,\"signals\":{\"want\":9}}", 9, "DesiredWithinRange"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		int desired;
		char reason[64];
		assert_int_equal(ask(s, &out, rows[i].line, &desired, reason, sizeof reason), 0);
		if (desired != rows[i].desired || strcmp(reason, rows[i].reason) != 0)
			fail_msg("%s: %s", rows[i].line, buf_str(&out));
	}
	buf_done(&out);
	step_free(s);
}

static void bad_line_is_answered_and_changes_nothing(void **state)
{
	(void)state;
	struct engine en;
	make_policy(&en);
	en.policy.cooldown.up_ms = 60000;
	struct step *with = step_new(&(struct binding){.policy = &en.policy, .target = &target}),
	            *without = step_new(&(struct binding){.policy = &en.policy, .target = &target});
	struct buf out, other;
	buf_init(&out, 1 << 20);
	buf_init(&other, 1 << 20);
	static const char *const good[] = {"{\"time\":0,\"replicas\":1,\"signals\":{\"want\":4}}",
	                                   "{\"time\":15,\"replicas\":4,\"signals\":{\"want\":6,\"load\":0.4}}",
	                                   "{\"time\":75,\"replicas\":4,\"signals\":{\"want\":6}}"};
	static const char *const bad[] = {"{\"time\":7,\"replicas\":9,\"signals\":{\"want\":\"x\"}}", "nonsense",
	                                  "{\"time\":14.9,\"replicas\":9}"};
	static const char *const said[] = {"a value of signal want", "JSON 1:1",
	                                   "time goes back from 15.000 to 14.900"};
	int desired, plain;
	char reason[256], same[256];
	for (size_t i = 0; i < N(good); i++) {
		assert_int_equal(ask(with, &out, good[i], &desired, reason, sizeof reason), 0);
		assert_int_equal(ask(without, &other, good[i], &plain, same, sizeof same), 0);
		assert_string_equal(buf_str(&out), buf_str(&other));
		if (i == 0)
			continue;
		for (size_t k = 0; k < N(bad); k++) {
			assert_int_equal(ask(with, &out, bad[k], &desired, reason, sizeof reason), -1);
			assert_int_equal(desired, -1);
			if (i == 1 || k < 2)
				assert_non_null(strstr(reason, said[k]));
		}
	}
	buf_done(&out);
	buf_done(&other);
	step_free(with);
	step_free(without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(observation_is_read),
	        cmocka_unit_test(pods_have_states),
	        cmocka_unit_test(omitted_fields_are_unknown),
	        cmocka_unit_test(bad_line_is_refused_with_its_reason),
	        cmocka_unit_test(series_have_a_ceiling),
	        cmocka_unit_test(replicas_that_change_are_a_scale_at_the_time_of_the_line_before),
	        cmocka_unit_test(bad_line_is_answered_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
