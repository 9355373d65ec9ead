// SPDX-License-Identifier: Apache-2.0
// Goal of this test: JSON from the network is read strictly, with the place of a fault; JSON we write is always valid.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_scan.h"
#include "base/json/json_write.h"

#define N(rows) (sizeof(rows) / sizeof(rows)[0])

static void valid_json_is_read(void **state)
{
	static const char *const rows[] = {
	        "{}",
	        "[]",
	        " \t\r\n{ \"a\" : [ 1 , 2 ] } \n",
	        "null",
	        "\"x\"",
	        "-0.5e+10",
	        "0",
	        "[true,false,null]",
	        "[\"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
	        "{\"a\":{\"b\":{\"c\":[[[]],{}]}},\"d\":\"\"}",
	        "{\"\":1}",
	        "[1E400]",
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e;
		cJSON *tree = json_read(rows[i], strlen(rows[i]), &e);
		if (!tree)
			fail_msg("%s: %s", rows[i], e.msg);
		cJSON_Delete(tree);
	}
}

static void malformed_json_is_refused_with_line_and_column(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
	        {"", "JSON 1:1: the text ends early: expected a value"},
	        {"  ", "JSON 1:3: the text ends early"},
	        {"{\"a\":1", "JSON 1:7: the text ends early: expected ',' or '}' after a member"},
	        {"[1,2", "JSON 1:5: the text ends early: expected ',' or ']' after an element"},
	        {"{\n \"a\": 1\n \"b\": 2}", "JSON 3:2: found '\"': expected ',' or '}'"},
	        {"{\"a\" 1}", "JSON 1:6: found '1': expected ':'"},
	        {"{a:1}", "JSON 1:2: found 'a': expected a member name in double quotes"},
	        {"{\"a\":1,}", "JSON 1:8: found '}': expected a member name"},
	        {"[1,]", "JSON 1:4: found ']': expected a value"},
	        {"[,1]", "JSON 1:2: found ',': expected a value"},
	        {"[1}", "JSON 1:3: found '}': expected ',' or ']'"},
	        {"{]", "JSON 1:2: found ']': expected a member name"},
	        {"]", "JSON 1:1: found ']': expected a value"},
	        {"{} x", "JSON 1:4: found 'x': expected nothing after the end"},
	        {"{}{}", "JSON 1:3: found '{': expected nothing after the end"},
	        {"1 2", "JSON 1:3: found '2': expected nothing"},
	        {"[01]", "JSON 1:3: found '1': expected ','"},
	        {"[1.]", "JSON 1:4: found ']': expected a digit"},
	        {"[.5]", "JSON 1:2: found '.': expected a value"},
	        {"[+1]", "JSON 1:2: found '+': expected a value"},
	        {"[-]", "JSON 1:3: found ']': expected a digit"},
	        {"[1e]", "JSON 1:4: found ']': expected a digit"},
	        {"[NaN]", "JSON 1:2: found 'N': expected a value"},
	        {"[nul]", "JSON 1:2: found 'n': expected a value"},
	        {"[True]", "JSON 1:2: found 'T': expected a value"},
	        {"['a']", "JSON 1:2: found ''': expected a value"},
	        {"[\"a\nb\"]", "JSON 1:4: found byte 0x0a: control characters in strings must be escaped"},
	        {"[\"\\x\"]", "JSON 1:4: found 'x': expected one of"},
	        {"[\"\\u12g4\"]", "JSON 1:7: found 'g': expected four hexadecimal digits"},
	        {"[\"\\ud800\"]", "expected the second half of a surrogate pair"},
	        {"[\"\\ud800\\u0041\"]", "expected the second half of a surrogate pair"},
	        {"[\"\\udc00\"]", "second half of a surrogate pair without the first"},
	        {"[\"a\\u0000b\"]", "\\u0000 inside a string is not supported"},
	        {"[\"\xff\"]", "JSON 1:3: found byte 0xff: this is not valid UTF-8"},
	        {"[\"\xc0\x80\"]", "this is not valid UTF-8"},
	        {"[\"\xed\xa0\x80\"]", "this is not valid UTF-8"},
	        {"[\"abc", "JSON 1:6: the text ends early: expected '\"'"},
	        {"[\"abc\\", "the text ends early: expected one of"},
	        {"\xef\xbb\xbf{}", "JSON 1:1: found byte 0xef: expected a value"},
	        {"<html>", "JSON 1:1: found '<': expected a value"},
	        {"/* c */ {}", "JSON 1:1: found '/': expected a value"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e = {.msg = ""};
		cJSON *tree = json_read(rows[i].text, strlen(rows[i].text), &e);
		if (tree)
			fail_msg("%s was accepted", rows[i].text);
		if (e.kind != ERR_PROTOCOL || !strstr(e.msg, rows[i].says))
			fail_msg("%s: kind %d: %s", rows[i].text, e.kind, e.msg);
	}
}

static void embedded_nul_is_refused(void **state)
{
	struct err e;
	assert_null(json_read("{}\0", 3, &e));
	assert_non_null(strstr(e.msg, "JSON 1:3: found byte 0x00: expected nothing"));
	assert_null(json_read("[\"a\0b\"]", 7, &e));
	assert_non_null(strstr(e.msg, "JSON 1:4: found byte 0x00: control characters"));
	assert_null(json_read("[1,\0002]", 6, &e));
	assert_int_equal(e.kind, ERR_PROTOCOL);
}

static void only_len_bytes_are_read(void **state)
{
	cJSON *tree = json_read("[1]garbage", 3, NULL);
	assert_non_null(tree);
	cJSON_Delete(tree);
	assert_null(json_read("[12345]", 4, NULL));
	const char exact[3] = {'[', '1', ']'}; // no terminator behind it: the sanitizer watches
	tree = json_read(exact, sizeof exact, NULL);
	assert_non_null(tree);
	cJSON_Delete(tree);
}

static void depth_and_size_and_number_ceilings(void **state)
{
	struct err e;
	char nested[4 * JSON_DEPTH_MAX];
	for (size_t depth = JSON_DEPTH_MAX - 1; depth <= JSON_DEPTH_MAX + 1; depth++) {
		memset(nested, '[', depth);
		memset(nested + depth, ']', depth);
		cJSON *tree = json_read(nested, 2 * depth, &e);
		assert_int_equal(tree != NULL, depth <= JSON_DEPTH_MAX);
		cJSON_Delete(tree);
	}
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "64"));

	size_t len = (size_t)JSON_BYTES_MAX + 1;
	char *blanks = malloc(len);
	assert_non_null(blanks);
	memset(blanks, ' ', len);
	blanks[0] = '1';
	cJSON *tree = json_read(blanks, len - 1, &e);
	assert_non_null(tree);
	cJSON_Delete(tree);
	assert_null(json_read(blanks, len, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "16777217"));
	assert_non_null(strstr(e.msg, "16777216"));
	memset(blanks, '[', len); // a bomb must not eat the stack
	assert_null(json_read(blanks, len - 1, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	free(blanks);

	char number[66];
	memset(number, '1', sizeof number);
	tree = json_read(number, 63, &e);
	assert_non_null(tree);
	cJSON_Delete(tree);
	assert_null(json_read(number, 64, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
}

static void members_are_found_by_exact_name(void **state)
{
	static const char text[] = "{\"a\":\"x\",\"A\":\"y\",\"n\":3,\"o\":{},\"z\":null}";
	cJSON *tree = json_read(text, sizeof text - 1, NULL);
	assert_non_null(tree);
	assert_string_equal(json_get_str(tree, "a", "none"), "x");
	assert_string_equal(json_get_str(tree, "A", "none"), "y");
	assert_string_equal(json_get_str(tree, "b", "none"), "none");
	assert_string_equal(json_get_str(tree, "n", "none"), "none");
	assert_null(json_get_str(tree, "z", NULL));
	assert_true(cJSON_IsObject(json_get(tree, "o")));
	assert_null(json_get(json_get(tree, "n"), "x"));
	assert_null(json_get(NULL, "x"));
	assert_true(json_may_be(json_get(tree, "o"), cJSON_IsObject));
	assert_true(json_may_be(json_get(tree, "z"), cJSON_IsObject));
	assert_true(json_may_be(json_get(tree, "b"), cJSON_IsObject));
	assert_false(json_may_be(json_get(tree, "a"), cJSON_IsObject));
	assert_false(json_may_be(json_get(tree, "n"), cJSON_IsArray));
	cJSON_Delete(tree);
}

static void integers_are_whole_and_in_range(void **state)
{
	static const struct {
		const char *json;
		int rc;
		int64_t value;
	} rows[] = {
	        {"{\"n\":3}", 1, 3},
	        {"{\"n\":-100}", 1, -100},
	        {"{\"n\":3.0}", 1, 3},
	        {"{\"n\":1e2}", 1, 100},
	        {"{\"n\":9007199254740991}", 1, 9007199254740991},
	        {"{}", 0, 0},
	        {"{\"n\":null}", 0, 0},
	        {"[]", 0, 0},
	        {"{\"n\":9007199254740993}", -1, 0},
	        {"{\"n\":1e300}", -1, 0},
	        {"{\"n\":1e400}", -1, 0},
	        {"{\"n\":-101}", -1, 0},
	        {"{\"n\":2.5}", -1, 0},
	        {"{\"n\":\"3\"}", -1, 0},
	        {"{\"n\":true}", -1, 0},
	        {"{\"n\":{}}", -1, 0},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e = {.msg = ""};
		int64_t v = 99;
		cJSON *tree = json_read(rows[i].json, strlen(rows[i].json), &e);
		assert_non_null(tree);
		int rc = json_get_i64(tree, "n", -100, INT64_MAX, &v, &e);
		if (rc != rows[i].rc || v != (rc == 1 ? rows[i].value : 99))
			fail_msg("%s: %d, %lld", rows[i].json, rc, (long long)v);
		if (rc < 0 && (e.kind != ERR_PROTOCOL || !strstr(e.msg, "n is ")))
			fail_msg("%s: %s", rows[i].json, e.msg);
		cJSON_Delete(tree);
	}
}

static void write_sample(struct buf *b, int indent)
{
	struct json_writer w;
	buf_reset(b);
	json_write_init(&w, b, indent);
	json_write_object_begin(&w);
	json_write_key(&w, "items");
	json_write_array_begin(&w);
	json_write_i64(&w, INT64_MIN);
	json_write_f64(&w, 0.7);
	json_write_object_begin(&w);
	json_write_object_end(&w);
	json_write_array_begin(&w);
	json_write_array_end(&w);
	json_write_object_begin(&w);
	json_write_key(&w, "k");
	json_write_null(&w);
	json_write_object_end(&w);
	json_write_array_end(&w);
	json_write_key(&w, "ok");
	json_write_bool(&w, true);
	json_write_key(&w, "no");
	json_write_bool(&w, false);
	json_write_object_end(&w);
}

static void commas_and_nesting_are_the_writers_business(void **state)
{
	struct buf b;
	buf_init(&b, 1000);
	write_sample(&b, 0);
	assert_string_equal(buf_str(&b),
	                    "{\"items\":[-9223372036854775808,0.7,{},[],{\"k\":null}],\"ok\":true,\"no\":false}");
	write_sample(&b, 2);
	assert_string_equal(buf_str(&b), "{\n"
	                                 "  \"items\": [\n"
	                                 "    -9223372036854775808,\n"
	                                 "    0.7,\n"
	                                 "    {},\n"
	                                 "    [],\n"
	                                 "    {\n"
	                                 "      \"k\": null\n"
	                                 "    }\n"
	                                 "  ],\n"
	                                 "  \"ok\": true,\n"
	                                 "  \"no\": false\n"
	                                 "}");
	buf_done(&b);
}

static void strings_are_escaped_and_valid_utf8(void **state)
{
	static const struct {
		const char *text, *json;
	} rows[] = {
	        {"", "\"\""},
	        {NULL, "null"},
	        {"a\"b\\c/", "\"a\\\"b\\\\c/\""},
	        {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
	        {"\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\""},
	        // C1 (a terminal takes U+009B for ESC [), line ends of YAML, direction, byte order mark, noncharacter
	        {"\xc2\x85\xc2\x9b\xc2\xa0", "\"\\u0085\\u009b\xc2\xa0\""},
	        {"\xe2\x80\xa8\xe2\x80\xae\xef\xbb\xbf\xef\xbf\xbe", "\"\\u2028\\u202e\\ufeff\\ufffe\""},
	        {"\xf3\xa0\x81\x81\xf0\x9f\x98\x80", "\"\\udb40\\udc41\xf0\x9f\x98\x80\""}, // a tag, an emoji
	        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
	        {"x\xff"
	         "y\xc3",
	         "\"x\xef\xbf\xbdy\xef\xbf\xbd\""},
	        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	};
	struct buf b;
	struct json_writer w;
	buf_init(&b, 1000);
	for (size_t i = 0; i < N(rows); i++) {
		buf_reset(&b);
		json_write_init(&w, &b, 0);
		json_write_str(&w, rows[i].text);
		if (strcmp(buf_str(&b), rows[i].json) != 0)
			fail_msg("row %zu: %s", i, buf_str(&b));
	}
	buf_reset(&b);
	json_write_init(&w, &b, 0);
	json_write_strn(&w, "a\0b", 3);
	assert_string_equal(buf_str(&b), "\"a\\u0000b\"");
	buf_done(&b);
}

static void formats_write_members_as_their_functions_do(void **state)
{
	struct buf out;
	struct json_writer w;
	buf_init(&out, 4096);
	json_write_init(&w, &out, 0);
	json_write_format(&w, "{name:%s,none:%s,n:%d,big:%ld,size:%zu,inner:{ratio:%g,nan:%g},items:[", "a\"b",
	                  (const char *)*state, -1, INT64_MAX, (size_t)7, 0.25, NAN);
	json_write_str(&w, "x");
	json_write_format(&w, "{ok:%i}],last:%i,at:%jd}", true, false, INT64_C(1767603600000));
	assert_string_equal(buf_str(&out),
	                    "{\"name\":\"a\\\"b\",\"none\":null,\"n\":-1,\"big\":9223372036854775807,\"size\":7,"
	                    "\"inner\":{\"ratio\":0.25,\"nan\":null},\"items\":[\"x\",{\"ok\":true}],\"last\":false,"
	                    "\"at\":\"2026-01-05T09:00:00Z\"}");
	buf_done(&out);
}

static void messages_are_visible_to_readers_that_decode(void **state)
{
	struct buf out;
	struct json_writer w;
	buf_init(&out, 4096);
	json_write_init(&w, &out, 0);
	json_write_object_begin(&w);
	json_write_member_text(&w, "message", "a\x1b[31m\n\xe2\x80\xae\xff caf\xc3\xa9");
	json_write_member_text(&w, "none", NULL);
	json_write_object_end(&w);
	assert_string_equal(buf_str(&out),
	                    "{\"message\":\"a\\\\x1b[31m\\\\n\\\\u202e\\\\xff caf\xc3\xa9\",\"none\":null}");
	buf_done(&out);
}

static void numbers_that_json_has_not_become_null(void **state)
{
	struct buf b;
	struct json_writer w;
	buf_init(&b, 1000);
	json_write_init(&w, &b, 0);
	json_write_array_begin(&w);
	json_write_f64(&w, NAN);
	json_write_f64(&w, INFINITY);
	json_write_f64(&w, -INFINITY);
	json_write_f64(&w, 1e21);
	json_write_f64(&w, 5e-324);
	json_write_array_end(&w);
	assert_string_equal(buf_str(&b), "[null,null,null,1e+21,5e-324]");
	buf_done(&b);
}

static void too_deep_or_too_long_sets_failed(void **state)
{
	struct buf b;
	struct json_writer w;
	for (int depth = JSON_WRITE_DEPTH_MAX; depth <= JSON_WRITE_DEPTH_MAX + 2; depth++) {
		buf_init(&b, 1000);
		json_write_init(&w, &b, 0);
		for (int i = 0; i < depth; i++)
			json_write_array_begin(&w);
		json_write_i64(&w, 1);
		for (int i = 0; i < depth; i++)
			json_write_array_end(&w);
		assert_int_equal(b.failed, depth > JSON_WRITE_DEPTH_MAX);
		assert_int_equal(w.depth, 0);
		buf_done(&b);
	}
	buf_init(&b, 50);
	write_sample(&b, 0);
	assert_true(b.failed);
	assert_true(b.len <= 50);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(valid_json_is_read),
	        cmocka_unit_test(malformed_json_is_refused_with_line_and_column),
	        cmocka_unit_test(embedded_nul_is_refused),
	        cmocka_unit_test(only_len_bytes_are_read),
	        cmocka_unit_test(depth_and_size_and_number_ceilings),
	        cmocka_unit_test(members_are_found_by_exact_name),
	        cmocka_unit_test(integers_are_whole_and_in_range),
	        cmocka_unit_test(commas_and_nesting_are_the_writers_business),
	        cmocka_unit_test(strings_are_escaped_and_valid_utf8),
	        cmocka_unit_test(formats_write_members_as_their_functions_do),
	        cmocka_unit_test(messages_are_visible_to_readers_that_decode),
	        cmocka_unit_test(numbers_that_json_has_not_become_null),
	        cmocka_unit_test(too_deep_or_too_long_sets_failed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
