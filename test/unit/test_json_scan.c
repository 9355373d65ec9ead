// SPDX-License-Identifier: Apache-2.0
// Goal of this test: JSON that arrives in pieces of any size gives the same tokens, and the same errors at the same
// positions, as the whole text; keys and strings above the ceiling are cut and counted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_scan.h"

// Writes each token in a short form: { } [ ] k<name> s<text> #<number> t f n
static int on_token(void *arg, const struct json_token *t, struct err *e)
{
	static const char marks[] = "{}[]ks#tfn";
	struct buf *out = arg;
	buf_putc(out, marks[t->kind]);
	if (t->kind == JSON_KEY || t->kind == JSON_STRING || t->kind == JSON_NUMBER)
		buf_printf(out, "<%.*s>", (int)t->len, t->text);
	if (t->bytes > t->len)
		buf_printf(out, "(%zu)", t->bytes);
	if (t->len == 4 && memcmp(t->text, "stop", 4) == 0)
		return err_set(e, ERR_REJECTED, "stopped");
	return 0;
}

static int scan(const char *text, size_t piece, size_t string_bytes_max, struct buf *out, struct err *e)
{
	struct json_scan s;
	size_t len = strlen(text);
	int rc = 0;
	buf_init(out, 4096);
	json_scan_init(&s, string_bytes_max, on_token, out);
	for (size_t at = 0; rc == 0 && at < len; at += piece)
		rc = json_scan_feed(&s, text + at, piece < len - at ? piece : len - at, e);
	if (rc == 0)
		rc = json_scan_finish(&s, e);
	else
		assert_int_equal(json_scan_feed(&s, "x", 1, NULL), -1); // after an error every call fails
	json_scan_done(&s);
	return rc;
}

static void pieces_of_any_size_give_the_same_tokens(void **state)
{
	(void)state;
	static const struct {
		const char *text, *tokens;
	} rows[] = {
	        {" {\"a\" : [1, -0.5e+10 ,0], \"\":{}, \"b\":[] }\n", "{k<a>[#<1>#<-0.5e+10>#<0>]k<>{}k<b>[]}"},
	        {"[true,false,null]", "[tfn]"},
	        {"\"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t-\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
	         "s<\xc3\xa9\xf0\x9f\x98\x80\"\\/\b\f\n\r\t-\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80>"},
	        {"12", "#<12>"},
	        {"{\"a\":1,\"a\":2}", "{k<a>#<1>k<a>#<2>}"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (size_t piece = 1; piece <= strlen(rows[i].text); piece++) {
			struct buf out;
			struct err e;
			if (scan(rows[i].text, piece, 100, &out, &e) < 0)
				fail_msg("%s in pieces of %zu: %s", rows[i].text, piece, e.msg);
			assert_string_equal(buf_str(&out), rows[i].tokens);
			buf_done(&out);
		}
}

static void strings_are_cut_at_the_ceiling_and_counted(void **state)
{
	(void)state;
	for (size_t piece = 1; piece <= 20; piece++) {
		struct buf out;
		struct err e;
		assert_int_equal(scan("{\"abcd\":\"\\u0041bcdef\"}", piece, 3, &out, &e), 0);
		assert_string_equal(buf_str(&out), "{k<abc>(4)s<Abc>(6)}");
		buf_done(&out);
	}
}

// A watch stream, in which tenants choose the contents of strings.
static void sequence_of_lenient_documents_is_scanned(void **state)
{
	(void)state;
	static const char text[] = " {\"a\":\"\\u0000\\ud800\xff\"}\n{\"b\":[]} {}";
	for (size_t piece = 1; piece <= sizeof text; piece++) {
		struct json_scan s;
		struct buf out;
		struct err e;
		buf_init(&out, 4096);
		json_scan_init(&s, 1, on_token, &out);
		s.is_sequence = s.is_lenient = true;
		for (size_t at = 0, len = sizeof text - 1; at < len; at += piece) {
			assert_int_equal(json_scan_feed(&s, text + at, piece < len - at ? piece : len - at, &e), 0);
		}
		assert_int_equal(json_scan_finish(&s, &e), 0);
		assert_true(json_scan_is_between(&s));
		assert_int_equal(json_scan_feed(&s, "{\"c\":1", 6, &e), 0);
		assert_false(json_scan_is_between(&s));
		assert_non_null(strstr(buf_str(&out), "(5)}{k<b>[]}{}"));
		json_scan_done(&s);
		buf_done(&out);
	}
}

static void errors_have_the_same_place_in_pieces_of_any_size(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} rows[] = {
	        {"", "JSON 1:1: the text ends early"},
	        {"{\n \"a\": 1\n \"b\": 2}", "JSON 3:2: found '\"': expected ',' or '}'"},
	        {"[nul]", "JSON 1:2: found 'n': expected a value"},
	        {"[1.]", "JSON 1:4: found ']': expected a digit"},
	        {"[\"\xe2\x82\"]", "JSON 1:3: found byte 0xe2: this is not valid UTF-8"},
	        {"[\"\xe2\x82", "JSON 1:3: found byte 0xe2: this is not valid UTF-8"},
	        {"[\"\\ud800x\"]", "JSON 1:9: found 'x': expected the second half"},
	        {"[\"\\ud800\\u0041\"]", "expected the second half"},
	        {"[\"\\udc00\"]", "second half of a surrogate pair without the first"},
	        {"\"\\u0000\"", "\\u0000 inside a string"},
	        {"{} {", "JSON 1:4: found '{': expected nothing"},
	        {"[1234567890123456789012345678901234567890123456789012345678901234]",
	         "JSON 1:2: found '1': this number is longer than the ceiling of 63 bytes"},
	        {"[\"stop\", ]", "stopped"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (size_t piece = 1; piece <= strlen(rows[i].text) + 1; piece++) {
			struct buf out;
			struct err e;
			assert_int_equal(scan(rows[i].text, piece, 100, &out, &e), -1);
			if (!strstr(e.msg, rows[i].says))
				fail_msg("%s in pieces of %zu: %s", rows[i].text, piece, e.msg);
			buf_done(&out);
		}
}

static void scan_can_be_used_again(void **state)
{
	(void)state;
	struct json_scan s;
	struct buf out;
	struct err e;
	buf_init(&out, 4096);
	json_scan_init(&s, 100, on_token, &out);
	assert_int_equal(json_scan_feed(&s, "[\"half", 6, &e), 0);
	assert_int_equal(s.depth, 1);
	json_scan_reset(&s);
	assert_int_equal(json_scan_feed(&s, "{}", 2, &e), 0);
	assert_int_equal(json_scan_finish(&s, &e), 0);
	assert_string_equal(buf_str(&out), "[{}");
	json_scan_done(&s);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(pieces_of_any_size_give_the_same_tokens),
	        cmocka_unit_test(strings_are_cut_at_the_ceiling_and_counted),
	        cmocka_unit_test(sequence_of_lenient_documents_is_scanned),
	        cmocka_unit_test(errors_have_the_same_place_in_pieces_of_any_size),
	        cmocka_unit_test(scan_can_be_used_again),
	};
	return cmocka_run_group_tests_name("json_scan", tests, NULL, NULL);
}
