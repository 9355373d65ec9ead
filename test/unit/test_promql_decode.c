// SPDX-License-Identifier: Apache-2.0
// Goal of this test: every reply body of the query API is either decoded to the very numbers it holds, or refused
// with the kind and the place of what is wrong.
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
#include "promql/promql.h"
#include "promql/promql_decoder.h"
#include "test/support/promql_short.h"

#define ARENA_BYTES ((size_t)64 * 1024 * 1024)

// cmocka's assert_float_equal compares as float, which cannot distinguish two timestamps.
static void assert_near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("got %.17g, want %.17g", got, want);
}

struct fixture {
	struct arena arena;
	struct promql_result result;
	struct err e;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	if (!f)
		return -1;
	arena_init(&f->arena, ARENA_BYTES);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	arena_done(&f->arena);
	free(f);
	return 0;
}

static int decode(struct fixture *f, const char *body)
{
	arena_reset(&f->arena);
	err_clear(&f->e);
	return promql_decode(&f->arena, body, strlen(body), &f->result, &f->e);
}

static void decode_ok(struct fixture *f, const char *body)
{
	if (decode(f, body) < 0)
		fail_msg("%s\nwas refused: %s", body, f->e.msg);
}

static void test_vector_keeps_labels_value_and_time(void **state)
{
	struct fixture *f = *state;
	decode_ok(f, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
	             "{\"metric\":{\"__name__\":\"up\",\"pod\":\"a-\\u00e9\"},\"value\":[1435781451.781,\"1\"]},"
	             "{\"metric\":{},\"value\":[1435781451,\"-2.5e-3\"]}]}}");
	assert_int_equal(f->result.type, PROMQL_VECTOR);
	assert_int_equal(f->result.n_series, 2);
	const struct promql_series *s = f->result.series;
	assert_int_equal(s[0].n_labels, 2);
	assert_string_equal(promql_label(&s[0], "pod"), "a-\xc3\xa9");
	assert_string_equal(promql_label(&s[0], "absent"), "");
	assert_int_equal(s[0].n_samples, 1);
	assert_int_equal(s[0].samples[0].time_ms, 1435781451781);
	assert_near(s[0].samples[0].value, 1.0, 0.0);
	assert_int_equal(s[1].n_labels, 0);
	assert_int_equal(s[1].samples[0].time_ms, 1435781451000);
	assert_near(s[1].samples[0].value, -0.0025, 0.0);
	assert_int_equal(f->result.n_warnings, 0);
}

static void test_members_may_come_in_any_order(void **state)
{
	struct fixture *f = *state;
	decode_ok(f, "{\"data\":{\"result\":[{\"value\":[1.25,\"7\"],\"metric\":{\"pod\":\"a\"}}],\"resultType\":"
	             "\"vector\"},"
	             "\"isPartial\":true,\"status\":\"success\"}");
	assert_int_equal(f->result.n_series, 1);
	assert_int_equal(f->result.series[0].samples[0].time_ms, 1250);
	assert_near(f->result.series[0].samples[0].value, 7.0, 0.0);
	assert_string_equal(promql_label(&f->result.series[0], "pod"), "a");
	assert_int_equal(f->result.n_warnings, 1);
	decode_ok(f, "{\"data\":{\"result\":[1,\"7\"],\"resultType\":\"scalar\"},\"status\":\"success\"}");
	assert_int_equal(f->result.type, PROMQL_SCALAR);
	decode_ok(f, "{\"data\":{\"result\":[{\"values\":[[1,\"2\"]],\"metric\":{}}],\"resultType\":\"matrix\"},"
	             "\"status\":\"success\"}");
	assert_int_equal(f->result.series[0].n_samples, 1);
}

static void test_no_series_is_an_empty_vector(void **state)
{
	struct fixture *f = *state;
	decode_ok(f, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}");
	assert_int_equal(f->result.type, PROMQL_VECTOR);
	assert_int_equal(f->result.n_series, 0);
}

static void test_scalar_is_one_series_without_labels(void **state)
{
	struct fixture *f = *state;
	decode_ok(f, "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1.5,\"42\"]}}");
	assert_int_equal(f->result.type, PROMQL_SCALAR);
	assert_int_equal(f->result.n_series, 1);
	assert_int_equal(f->result.series[0].n_labels, 0);
	assert_int_equal(f->result.series[0].samples[0].time_ms, 1500);
	assert_near(f->result.series[0].samples[0].value, 42.0, 0.0);
}

static void test_string_is_text_and_no_series(void **state)
{
	struct fixture *f = *state;
	decode_ok(f, "{\"status\":\"success\",\"data\":{\"resultType\":\"string\",\"result\":[1,\"hello\"]}}");
	assert_int_equal(f->result.type, PROMQL_STRING);
	assert_int_equal(f->result.n_series, 0);
	assert_string_equal(f->result.string, "hello");
}

static void test_matrix_keeps_every_sample_in_order(void **state)
{
	struct fixture *f = *state;
	decode_ok(f, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
	             "{\"metric\":{\"gpu\":\"0\"},\"values\":[[10,\"1\"],[25,\"2\"],[40,\"3\"]]},"
	             "{\"metric\":{\"gpu\":\"1\"},\"values\":[]}]}}");
	assert_int_equal(f->result.type, PROMQL_MATRIX);
	assert_int_equal(f->result.n_series, 2);
	assert_int_equal(f->result.series[0].n_samples, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(f->result.series[0].samples[i].time_ms, 10000 + 15000 * (int64_t)i);
		assert_near(f->result.series[0].samples[i].value, (double)(i + 1), 0.0);
	}
	assert_int_equal(f->result.series[1].n_samples, 0);
}

static void test_nan_and_infinities_are_values(void **state)
{
	struct fixture *f = *state;
	decode_ok(f,
	          "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},\"values\":"
	          "[[1,\"NaN\"],[2,\"+Inf\"],[3,\"-Inf\"]]}]}}");
	const struct promql_sample *v = f->result.series[0].samples;
	assert_true(isnan(v[0].value));
	assert_true(isinf(v[1].value) && v[1].value > 0);
	assert_true(isinf(v[2].value) && v[2].value < 0);
}

static void test_times_are_rounded_to_the_nearest_ms(void **state)
{
	static const struct {
		const char *seconds;
		int64_t ms;
	} rows[] = {
	        {"0", 0},
	        {"1735689600.0004", 1735689600000},
	        {"1735689600.0006", 1735689600001},
	        {"1735689600.999", 1735689600999},
	        {"1435781460.781", 1435781460781}, // 1435781460780.99.. in a double: truncation would lose a ms
	        {"1.7e9", 1700000000000},
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char body[256];
		snprintf(body, sizeof body,
		         "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[%s,\"1\"]}}",
		         rows[i].seconds);
		decode_ok(f, body);
		assert_int_equal(f->result.series[0].samples[0].time_ms, rows[i].ms);
	}
}

static void test_warnings_are_kept_and_infos_ignored(void **state)
{
	struct fixture *f = *state;
	decode_ok(f, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]},"
	             "\"warnings\":[\"store a\\nis down\",\"partial\"],\"infos\":[\"metric might not be a counter\"]}");
	assert_int_equal(f->result.n_warnings, 2);
	assert_string_equal(f->result.warnings[0], "store a\\nis down");
	assert_string_equal(f->result.warnings[1], "partial");
	decode_ok(f, "{\"status\":\"success\",\"warnings\":null,\"infos\":7,"
	             "\"data\":{\"resultType\":\"vector\",\"result\":[]}}");
	assert_int_equal(f->result.n_warnings, 0);
}

static void test_partial_answer_is_a_warning_and_a_remark_is_none(void **state)
{
	struct fixture *f = *state;
	decode_ok(f, "{\"status\":\"success\",\"isPartial\":true,\"data\":{\"resultType\":\"vector\",\"result\":[]}}");
	assert_int_equal(f->result.n_warnings, 1);
	assert_non_null(strstr(f->result.warnings[0], "partial"));
	decode_ok(f, "{\"status\":\"success\",\"isPartial\":false,\"data\":{\"resultType\":\"vector\",\"result\":[]}}");
	assert_int_equal(f->result.n_warnings, 0);
	decode_ok(f, "{\"status\":\"success\",\"isPartial\":true,\"warnings\":[\"PromQL info: metric might not be a "
	             "counter\","
	             "\"store away\"],\"data\":{\"resultType\":\"vector\",\"result\":[]}}");
	assert_int_equal(f->result.n_warnings, 2);
	assert_string_equal(f->result.warnings[1], "store away");
}

static void test_flood_of_warnings_is_cut_at_the_ceiling(void **state)
{
	struct fixture *f = *state;
	struct buf b;
	buf_init(&b, 1024 * 1024);
	buf_puts(&b, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]},\"warnings\":[\"w\"");
	for (int i = 0; i < PROMQL_WARNINGS_MAX * 2; i++)
		buf_puts(&b, ",\"w\"");
	buf_puts(&b, "]}");
	decode_ok(f, b.data);
	assert_int_equal(f->result.n_warnings, PROMQL_WARNINGS_MAX);
	buf_done(&b);
}

static void test_warning_behind_a_flood_of_remarks_counts(void **state)
{
	struct fixture *f = *state;
	struct buf b;
	buf_init(&b, 1024 * 1024);
	buf_puts(&b, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]},\"warnings\":[");
	for (int i = 0; i < PROMQL_WARNINGS_MAX * 2; i++)
		buf_puts(&b, "\"PromQL info: metric might not be a counter\",");
	buf_puts(&b, "\"store away\"]}");
	decode_ok(f, b.data);
	assert_int_equal(f->result.n_warnings, 1);
	assert_string_equal(f->result.warnings[0], "store away");
	buf_done(&b);
}

// body -> kind and a piece of the message.
struct refusal {
	const char *name, *body;
	enum err_kind kind;
	const char *says;
};

#define VECTOR(items) "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" items "]}}"
#define MATRIX(items) "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" items "]}}"

static const struct refusal refusals[] = {
        {"empty body", "", ERR_PROTOCOL, ""},
        {"cut body", "{\"status\":\"succ", ERR_PROTOCOL, ""},
        {"garbage after", "{\"status\":\"success\"} x", ERR_PROTOCOL, ""},
        {"a list", "[]", ERR_PROTOCOL, "status"},
        {"null", "null", ERR_PROTOCOL, "status"},
        {"no status", "{}", ERR_PROTOCOL, "status"},
        {"status a number", "{\"status\":1}", ERR_PROTOCOL, "status"},
        {"other status", "{\"status\":\"fine\"}", ERR_PROTOCOL, "status"},
        {"no data", "{\"status\":\"success\"}", ERR_PROTOCOL, "data: "},
        {"data null", "{\"status\":\"success\",\"data\":null}", ERR_PROTOCOL, "data: "},
        {"data without type", "{\"status\":\"success\",\"data\":{\"result\":[]}}", ERR_PROTOCOL, "resultType"},
        {"unknown type", "{\"status\":\"success\",\"data\":{\"resultType\":\"streams\",\"result\":[]}}", ERR_PROTOCOL,
         "\"streams\""},
        {"no result", "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\"}}", ERR_PROTOCOL,
         "data.result: not a list"},
        {"series a number", VECTOR("1"), ERR_PROTOCOL, "data.result[0].metric"},
        {"no metric", VECTOR("{\"value\":[1,\"1\"]}"), ERR_PROTOCOL, "data.result[0].metric"},
        {"metric a list", VECTOR("{\"metric\":[],\"value\":[1,\"1\"]}"), ERR_PROTOCOL, "data.result[0].metric"},
        {"label a number", VECTOR("{\"metric\":{\"gpu\":0},\"value\":[1,\"1\"]}"), ERR_PROTOCOL,
         "data.result[0].metric.gpu: not a string"},
        {"no value", VECTOR("{\"metric\":{}}"), ERR_PROTOCOL, "data.result[0].value: not a pair"},
        {"value alone", VECTOR("{\"metric\":{},\"value\":[1]}"), ERR_PROTOCOL, "data.result[0].value: not a pair"},
        {"value of three", VECTOR("{\"metric\":{},\"value\":[1,\"1\",2]}"), ERR_PROTOCOL,
         "data.result[0].value: not a pair"},
        {"second series bad", VECTOR("{\"metric\":{},\"value\":[1,\"1\"]},{\"metric\":{},\"value\":{}}"), ERR_PROTOCOL,
         "data.result[1].value: not a pair"},
        {"value a number", VECTOR("{\"metric\":{},\"value\":[1,1]}"), ERR_PROTOCOL,
         "data.result[0].value[1]: the value is not a string"},
        {"value null", VECTOR("{\"metric\":{},\"value\":[1,null]}"), ERR_PROTOCOL, "data.result[0].value[1]"},
        {"value text", VECTOR("{\"metric\":{},\"value\":[1,\"many\"]}"), ERR_PROTOCOL, "\"many\""},
        {"value with blank", VECTOR("{\"metric\":{},\"value\":[1,\" 1\"]}"), ERR_PROTOCOL, "data.result[0].value[1]"},
        {"value empty", VECTOR("{\"metric\":{},\"value\":[1,\"\"]}"), ERR_PROTOCOL, "data.result[0].value[1]"},
        {"time a string", VECTOR("{\"metric\":{},\"value\":[\"1\",\"1\"]}"), ERR_PROTOCOL,
         "data.result[0].value[0]: the time"},
        {"time too large", VECTOR("{\"metric\":{},\"value\":[1e300,\"1\"]}"), ERR_PROTOCOL,
         "data.result[0].value[0]: the time"},
        {"time infinite", VECTOR("{\"metric\":{},\"value\":[1e999,\"1\"]}"), ERR_PROTOCOL, ""},
        {"values absent", MATRIX("{\"metric\":{},\"value\":[1,\"1\"]}"), ERR_PROTOCOL,
         "data.result[0].values: not a list"},
        {"third sample bad", MATRIX("{\"metric\":{},\"values\":[[1,\"1\"],[2,\"2\"],[3,3]]}"), ERR_PROTOCOL,
         "data.result[0].values[2][1]"},
        {"time goes back", MATRIX("{\"metric\":{},\"values\":[[2,\"1\"],[1,\"2\"]]}"), ERR_PROTOCOL,
         "data.result[0].values[1]: the time goes back"},
        {"scalar an object", "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":{}}}",
         ERR_PROTOCOL, "data.result: not a pair"},
        {"scalar bad", "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"x\"]}}",
         ERR_PROTOCOL, "data.result[1]"},
        {"string a number", "{\"status\":\"success\",\"data\":{\"resultType\":\"string\",\"result\":[1,2]}}",
         ERR_PROTOCOL, "data.result[1]"},
        {"warnings text",
         "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]},\"warnings\":\"x\"}", ERR_PROTOCOL,
         "warnings"},
        {"isPartial a text",
         "{\"status\":\"success\",\"isPartial\":\"true\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
         ERR_PROTOCOL, "isPartial"},
        {"warning a number",
         "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]},\"warnings\":[1]}", ERR_PROTOCOL,
         "warnings[0]"},
        {"a series twice",
         VECTOR("{\"metric\":{\"pod\":\"a\",\"gpu\":\"0\"},\"value\":[1,\"1\"]},"
                "{\"metric\":{\"pod\":\"b\"},\"value\":[1,\"1\"]},"
                "{\"metric\":{\"gpu\":\"0\",\"pod\":\"a\"},\"value\":[1,\"9\"]}"),
         ERR_INPUT, "data.result[2]: the series {gpu=\"0\", pod=\"a\"} is there twice"},
        {"a series without labels twice",
         VECTOR("{\"metric\":{},\"value\":[1,\"1\"]},{\"metric\":{},\"value\":[1,\"1\"]}"), ERR_INPUT,
         "data.result[1]: the series {} is there twice"},
        {"a series of a range twice",
         MATRIX("{\"metric\":{\"a\":\"b\"},\"values\":[]},{\"metric\":{\"a\":\"b\"},\"values\":[]}"), ERR_INPUT,
         "twice"},
        {"a label twice", VECTOR("{\"metric\":{\"pod\":\"a\",\"pod\":\"b\"},\"value\":[1,\"1\"]}"), ERR_INPUT,
         "data.result[0].metric has the label pod twice"},
        {"status twice", "{\"status\":\"success\",\"status\":\"error\"}", ERR_PROTOCOL,
         "the reply has the member status twice"},
        {"value twice", VECTOR("{\"metric\":{},\"value\":[1,\"1\"],\"value\":[1,\"2\"]}"), ERR_PROTOCOL,
         "a series has the member value twice"},
        {"the type of another result, behind it",
         "{\"status\":\"success\",\"data\":{\"result\":[{\"metric\":{},\"values\":[]}],\"resultType\":\"vector\"}}",
         ERR_PROTOCOL, "data.result: the series of a matrix, where data.resultType says vector"},
        {"a bad value before the status",
         "{\"data\":{\"result\":[{\"metric\":{},\"value\":[1,\"x\"]},{\"metric\":[]}],\"resultType\":\"vector\"},"
         "\"status\":\"success\"}",
         ERR_PROTOCOL, "data.result[0].value[1]: \"x\""},
        {"bad data of an error",
         "{\"data\":{\"result\":[{\"value\":[[[1]]]},2]},\"errorType\":\"timeout\",\"error\":\"late\",\"status\":"
         "\"error\"}",
         ERR_TIMEOUT, "late"},
        {"histogram", VECTOR("{\"metric\":{\"__name__\":\"lat\",\"pod\":\"a\"},\"histogram\":[1,{\"count\":\"1\"}]}"),
         ERR_UNSUPPORTED, "{__name__=\"lat\", pod=\"a\"}"},
        {"histograms", MATRIX("{\"metric\":{\"__name__\":\"lat\"},\"histograms\":[]}"), ERR_UNSUPPORTED,
         "not supported: series {__name__=\"lat\"}"},
        {"parse error",
         "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"invalid parameter \\\"query\\\": 1:5: parse "
         "error: unexpected identifier\"}",
         ERR_REJECTED, "(bad_data): invalid parameter \"query\": 1:5: parse error"},
        {"execution", "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"found duplicate series\"}",
         ERR_REJECTED, "found duplicate series"},
        {"timeout", "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out\"}", ERR_TIMEOUT,
         "query timed out"},
        {"internal", "{\"status\":\"error\",\"errorType\":\"internal\",\"error\":\"x\"}", ERR_SERVER, "(internal): x"},
        {"unavailable", "{\"status\":\"error\",\"errorType\":\"unavailable\",\"error\":\"x\"}", ERR_SERVER, "x"},
        {"VictoriaMetrics", "{\"status\":\"error\",\"errorType\":\"422\",\"error\":\"cannot parse\"}", ERR_REJECTED,
         "(422): cannot parse"},
        {"silent error", "{\"status\":\"error\"}", ERR_REJECTED, "no reason"},
        {"terminal codes", "{\"status\":\"error\",\"error\":\"a\\u001b[31m\\u009bb\\nc\"}", ERR_REJECTED,
         "a\\x1b[31m\\u009bb\\nc"},
};

static void test_bad_replies_are_refused_with_kind_and_place(void **state)
{
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		const struct refusal *r = &refusals[i];
		if (decode(f, r->body) == 0)
			fail_msg("%s: was accepted", r->name);
		if (f->e.kind != r->kind || !strstr(f->e.msg, r->says))
			fail_msg("%s: got %s \"%s\", want %s \"...%s...\"", r->name, err_kind_info(f->e.kind)->name,
			         f->e.msg, err_kind_info(r->kind)->name, r->says);
		assert_int_equal(f->result.n_series, 0);
	}
}

// Writes a vector of n series, each with n_labels labels of value_len bytes; the last label distinguishes them.
static void put_vector(struct buf *b, size_t n, size_t n_labels, size_t value_len)
{
	buf_puts(b, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
	for (size_t i = 0; i < n; i++) {
		buf_printf(b, "%s{\"metric\":{", i ? "," : "");
		for (size_t j = 0; j < n_labels; j++)
			buf_printf(b, "%s\"l%zu\":\"%0*zu\"", j ? "," : "", j, (int)value_len, i);
		buf_puts(b, "},\"value\":[1,\"1\"]}");
	}
	buf_puts(b, "]}}");
	assert_false(b->failed);
}

static void put_matrix(struct buf *b, size_t n_series, size_t n_samples)
{
	buf_puts(b, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
	for (size_t i = 0; i < n_series; i++) {
		buf_printf(b, "%s{\"metric\":{\"i\":\"%zu\"},\"values\":[", i ? "," : "", i);
		for (size_t j = 0; j < n_samples; j++)
			buf_puts(b, j ? ",[1,\"1\"]" : "[1,\"1\"]");
		buf_puts(b, "]}");
	}
	buf_puts(b, "]}}");
	assert_false(b->failed);
}

static void expect_limit(struct fixture *f, struct buf *b, enum err_kind kind, const char *has, const char *ceiling)
{
	assert_int_equal(decode(f, b->data), -1);
	assert_int_equal(f->e.kind, kind);
	assert_non_null(strstr(f->e.msg, has));
	assert_non_null(strstr(f->e.msg, ceiling));
	buf_done(b);
}

static void test_every_ceiling_states_both_numbers(void **state)
{
	struct fixture *f = *state;
	struct buf b;
	buf_init(&b, (size_t)16 * 1024 * 1024);
	put_vector(&b, PROMQL_SERIES_MAX + 1, 1, 1);
	expect_limit(f, &b, ERR_TOO_LARGE, "5001 series", "5000");
	assert_int_equal(f->e.code, PROMQL_SERIES_MAX);
	put_vector(&b, 1, PROMQL_LABELS_MAX + 1, 1);
	expect_limit(f, &b, ERR_LIMIT, "65 labels", "64");
	put_vector(&b, 1, 1, PROMQL_LABEL_BYTES_MAX + 1);
	expect_limit(f, &b, ERR_LIMIT, "4097 bytes", "4096");
	put_matrix(&b, 2, PROMQL_SAMPLES_MAX / 2 + 1);
	expect_limit(f, &b, ERR_TOO_LARGE, "500001 samples", "500000");
	buf_puts(&b, "{\"status\":\"success\",\"data\":{\"resultType\":\"string\",\"result\":[1,\"");
	for (int i = 0; i < PROMQL_LABEL_BYTES_MAX + 1; i++)
		buf_putc(&b, 'x');
	buf_puts(&b, "\"]}}");
	expect_limit(f, &b, ERR_TOO_LARGE, "4097 bytes", "4096");
}

static void test_exactly_the_ceilings_pass(void **state)
{
	struct fixture *f = *state;
	struct buf b;
	buf_init(&b, (size_t)16 * 1024 * 1024);
	put_vector(&b, PROMQL_SERIES_MAX, 1, 1);
	decode_ok(f, b.data);
	assert_int_equal(f->result.n_series, PROMQL_SERIES_MAX);
	buf_reset(&b);
	put_vector(&b, 1, PROMQL_LABELS_MAX, PROMQL_LABEL_BYTES_MAX);
	decode_ok(f, b.data);
	assert_int_equal(f->result.series[0].n_labels, PROMQL_LABELS_MAX);
	buf_done(&b);
}

static void test_full_arena_is_a_ceiling_too(void **state)
{
	struct fixture *f = *state;
	struct arena small;
	arena_init(&small, 4096);
	struct buf b;
	buf_init(&b, 1024 * 1024);
	put_vector(&b, 1000, 1, 8);
	assert_int_equal(promql_decode(&small, b.data, b.len, &f->result, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_TOO_LARGE);
	assert_non_null(strstr(f->e.msg, "4096"));
	assert_int_equal(f->result.n_series, 0);
	buf_done(&b);
	arena_done(&small);
}

// ---- the shared memory budget ----

struct one_answer {
	struct arena arena;
	struct promql_decoder *decoder;
	int rc;
	struct err e;
};

static void answer_begins(struct one_answer *a, struct promql_budget *budget)
{
	arena_init(&a->arena, ARENA_BYTES);
	a->decoder = promql_decoder_new(&a->arena);
	assert_non_null(a->decoder);
	promql_decoder_start(a->decoder, &(struct promql_decoder_options){.budget = budget});
	a->rc = 0;
}

static void answer_gets(struct one_answer *a, const char *data, size_t len)
{
	if (a->rc == 0)
		a->rc = promql_decoder_feed(a->decoder, data, len, &a->e);
}

static void answer_ends(struct one_answer *a)
{
	struct promql_result result;
	if (a->rc == 0)
		a->rc = promql_decoder_finish(a->decoder, &result, &a->e);
	promql_decoder_free(a->decoder);
	arena_done(&a->arena);
}

// Four answers arrive concurrently, piece by piece: two large, a medium and a small one.
static void test_of_answers_at_the_same_time_the_largest_ends_and_the_others_get_through(void **state)
{
	(void)state;
	static const size_t n_series[] = {4800, 4700, 400, 1};
	struct promql_budget budget = {.max_bytes = (size_t)2400 * 1024};
	struct one_answer answers[4];
	struct buf bodies[4];
	for (size_t i = 0; i < 4; i++) {
		buf_init(&bodies[i], (size_t)16 * 1024 * 1024);
		put_vector(&bodies[i], n_series[i], 3, 8);
		answer_begins(&answers[i], &budget);
	}
	for (size_t at = 0; at < bodies[0].len; at += 16384) {
		for (size_t i = 0; i < 4; i++) {
			size_t left = at < bodies[i].len ? bodies[i].len - at : 0;
			answer_gets(&answers[i], bodies[i].data + at, left < 16384 ? left : 16384);
		}
		assert_true(budget.used_bytes <= budget.max_bytes);
	}
	for (size_t i = 0; i < 4; i++) {
		answer_ends(&answers[i]);
		buf_done(&bodies[i]);
	}
	assert_int_equal(answers[2].rc, 0);
	assert_int_equal(answers[3].rc, 0);
	assert_int_equal(answers[0].rc + answers[1].rc, -1); // one of the large answers was aborted for the other
	const struct err *e = &answers[answers[0].rc ? 0 : 1].e;
	assert_int_equal(e->kind, ERR_TOO_LARGE);
	assert_int_equal(e->code, 0);
	assert_non_null(strstr(e->msg, "2457600 bytes"));
	assert_true(LIST_EMPTY(&budget.answers));
	assert_int_equal(budget.used_bytes, 0);
}

static void test_answer_needs_no_more_memory_than_it_may_have(void **state)
{
	(void)state;
	struct promql_budget budget = {.max_bytes = ARENA_BYTES};
	struct one_answer a;
	struct buf b;
	buf_init(&b, (size_t)16 * 1024 * 1024);
	put_vector(&b, 4000, 10, 100);
	answer_begins(&a, &budget);
	promql_decoder_start(a.decoder, &(struct promql_decoder_options){.max_bytes = 1000000});
	answer_gets(&a, b.data, b.len);
	answer_ends(&a);
	assert_int_equal(a.e.kind, ERR_TOO_LARGE);
	assert_non_null(strstr(a.e.msg, "the ceiling is 1000000"));
	// It fits without the unused labels.
	static const char *const kept[] = {"l3", NULL};
	answer_begins(&a, &budget);
	promql_decoder_start(a.decoder, &(struct promql_decoder_options){.max_bytes = 1500000, .labels = kept});
	answer_gets(&a, b.data, b.len);
	struct promql_result r;
	assert_int_equal(promql_decoder_finish(a.decoder, &r, &a.e), 0);
	assert_int_equal(r.n_series, 4000);
	assert_int_equal(r.series[7].n_labels, 1);
	assert_int_equal(strlen(promql_label(&r.series[7], "l3")), 100);
	answer_ends(&a);
	buf_done(&b);
}

// A reply may be split anywhere.
static void test_pieces_of_any_size_make_the_same_result(void **state)
{
	struct fixture *f = *state;
	static const char body[] =
	        "{\"status\":\"success\",\"isPartial\":false,\"data\":{\"resultType\":\"matrix\",\"result\":["
	        "{\"metric\":{\"p\xc3\xb6"
	        "d\":\"a\\u00e9\\n\"},\"values\":[[1.5,\"-1e3\"],[2,\"NaN\"]]},"
	        "{\"metric\":{},\"values\":[]}],\"stats\":{\"a\":[{}]}},\"warnings\":[\"w\"]}";
	struct one_answer a;
	for (size_t size = 1; size < sizeof body; size++) {
		answer_begins(&a, NULL);
		for (size_t at = 0; at < sizeof body - 1; at += size)
			answer_gets(&a, body + at, size < sizeof body - 1 - at ? size : sizeof body - 1 - at);
		assert_int_equal(a.rc, 0);
		assert_int_equal(promql_decoder_finish(a.decoder, &f->result, &f->e), 0);
		assert_int_equal(f->result.n_series, 2);
		assert_string_equal(promql_label(&f->result.series[0], "p\xc3\xb6"
		                                                       "d"),
		                    "a\xc3\xa9\n");
		assert_int_equal(f->result.series[0].samples[0].time_ms, 1500);
		assert_near(f->result.series[0].samples[0].value, -1000, 0);
		assert_true(isnan(f->result.series[0].samples[1].value));
		assert_string_equal(f->result.warnings[0], "w");
		answer_ends(&a);
	}
}

static void test_server_text_is_one_clean_short_line(void **state)
{
	(void)state;
	char out[PROMQL_NAME_BYTES];
	static const struct {
		const char *in, *line, *all;
	} rows[] = {
	        {"", "", ""},
	        {"  \n\t ", "", ""},
	        {"\n\n  one\r\n two\n", "one", "one\\r\\n two"},
	        {"caf\xc3\xa9 \xff", "caf\xc3\xa9 \\xff", "caf\xc3\xa9 \\xff"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		size_t len = strlen(rows[i].in);
		assert_string_equal(promql_text_first_line(out, sizeof out, rows[i].in, len), rows[i].line);
		assert_string_equal(promql_text_show(out, sizeof out, rows[i].in, len), rows[i].all);
	}
	char lengthy[1000];
	memset(lengthy, 'x', sizeof lengthy);
	promql_text_show(out, sizeof out, lengthy, sizeof lengthy);
	assert_int_equal(strlen(out), sizeof out - 1);
	assert_string_equal(out + sizeof out - 4, "...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_vector_keeps_labels_value_and_time, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_members_may_come_in_any_order, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_no_series_is_an_empty_vector, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_scalar_is_one_series_without_labels, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_string_is_text_and_no_series, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_matrix_keeps_every_sample_in_order, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_nan_and_infinities_are_values, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_times_are_rounded_to_the_nearest_ms, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_warnings_are_kept_and_infos_ignored, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_partial_answer_is_a_warning_and_a_remark_is_none, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_warning_behind_a_flood_of_remarks_counts, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_flood_of_warnings_is_cut_at_the_ceiling, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_bad_replies_are_refused_with_kind_and_place, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_every_ceiling_states_both_numbers, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_exactly_the_ceilings_pass, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_full_arena_is_a_ceiling_too, setup, teardown),
	        cmocka_unit_test(test_of_answers_at_the_same_time_the_largest_ends_and_the_others_get_through),
	        cmocka_unit_test(test_answer_needs_no_more_memory_than_it_may_have),
	        cmocka_unit_test_setup_teardown(test_pieces_of_any_size_make_the_same_result, setup, teardown),
	        cmocka_unit_test(test_server_text_is_one_clean_short_line),
	};
	return cmocka_run_group_tests_name("promql_decode", tests, NULL, NULL);
}
