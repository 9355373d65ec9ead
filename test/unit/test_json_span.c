// SPDX-License-Identifier: Apache-2.0
// Goal: a text is whole exactly when it is one JSON value, so that what is absent from it is absent and not cut off.
#include "base/json/json_span.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

// In memory of its own, so that a look behind the end is seen.
static bool is_whole(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1);
	memcpy(copy, text, len);
	bool whole = json_span_is_whole((struct json_span){copy, len});
	free(copy);
	return whole;
}

static void valid_json_is_whole(void **state)
{
	static const char *const texts[] = {
	        "{}",     "[]",         " {\"a\":1}\n",      "null",     "true",
	        "false",  "\"\"",       "\"a\\\"b\\u0000\"", "0",        "-0",
	        "1.5e+3", "-12E-9",     "[[[[]]],{}]",       "[1,\t2 ]", "{\"a\":{\"b\":[null,\"}\"]},\"c\":[]}",
	        "1e999",  "{\"\":\"\"}"};
	for (size_t i = 0; i < COUNT(texts); i++)
		if (!is_whole(texts[i], strlen(texts[i])))
			fail_msg("%s is none", texts[i]);
}

static void malformed_json_is_not_whole(void **state)
{
	static const char *const texts[] = {
	        "",           " ",          "{",         "}",          "[}",          "{]",
	        "[1,]",       "[,1]",       "[1 2]",     "[1,,2]",     "{\"a\"}",     "{\"a\":}",
	        "{\"a\":1,}", "{,}",        "{a:1}",     "{1:1}",      "{\"a\" 1}",   "{\"a\":1 \"b\":2}",
	        "nul",        "nulll",      "True",      "01",         "1.",          ".5",
	        "-",          "+1",         "1e",        "1e+",        "0x1",         "NaN",
	        "Infinity",   "\"a",        "\"a\\",     "\"a\\\"",    "{}{}",        "[] ]",
	        "1 2",        "{\"a\":1}x", "{\"a\":[}", "{\"a\":{]}", "{\"a\":\"b}", "'a'"};
	for (size_t i = 0; i < COUNT(texts); i++)
		if (is_whole(texts[i], strlen(texts[i])))
			fail_msg("%s is whole", texts[i]);
	assert_false(json_span_is_whole((struct json_span){0}));
}

static void text_cut_off_anywhere_is_not_whole(void **state)
{
	static const char text[] = "{\"a\":[1,{\"b\":\"c\\\\\"},true],\"d\":{\"e\":-1.5e-3}}";
	for (size_t len = 0; len < sizeof text - 1; len++)
		assert_false(is_whole(text, len));
	assert_true(is_whole(text, sizeof text - 1));
}

static void depth_has_a_ceiling(void **state)
{
	char text[2 * JSON_SPAN_DEPTH_MAX + 2];
	memset(text, '[', JSON_SPAN_DEPTH_MAX + 1);
	memset(text + JSON_SPAN_DEPTH_MAX + 1, ']', JSON_SPAN_DEPTH_MAX + 1);
	assert_false(is_whole(text, sizeof text));
	assert_true(is_whole(text + 1, sizeof text - 2));
}

static void first_byte_determines_the_type_of_a_value(void **state)
{
	static const char *const values[] = {"{}", "[]", "\"x\"", "true", "false", "null", "7", "-7"};
	static const char kinds[] = "{[\"tfn00";
	for (size_t i = 0; i < COUNT(values); i++)
		assert_int_equal(json_span_kind((struct json_span){values[i], strlen(values[i])}), kinds[i]);
	assert_int_equal(json_span_kind((struct json_span){0}), '\0');
	assert_int_equal(json_span_kind((struct json_span){"\0", 1}), '0');
}

static struct json_span find_b(const char *list)
{
	return json_span_find((struct json_span){list, strlen(list)}, "type", "b");
}

static void first_item_with_the_text_is_found(void **state)
{
	struct json_span found = find_b("[{\"type\":\"a\"}, {\"type\":\"b\",\"n\":1}, {\"type\":\"b\"}]");
	assert_int_equal(json_span_kind(json_span_get(found, "n")), '0');
	static const char *const without[] = {"[]", "null", "[{\"type\":\"a\"}, 7]", "{\"type\":\"b\"}"};
	for (size_t i = 0; i < COUNT(without); i++)
		assert_null(find_b(without[i]).text);
	assert_null(json_span_find((struct json_span){0}, "type", "b").text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(valid_json_is_whole),
	        cmocka_unit_test(malformed_json_is_not_whole),
	        cmocka_unit_test(text_cut_off_anywhere_is_not_whole),
	        cmocka_unit_test(depth_has_a_ceiling),
	        cmocka_unit_test(first_byte_determines_the_type_of_a_value),
	        cmocka_unit_test(first_item_with_the_text_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
