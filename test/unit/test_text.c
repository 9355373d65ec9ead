// SPDX-License-Identifier: Apache-2.0
// Goal of this test: whatever a file holds, what a message shows of it is one line, harmless, and cut between
// characters.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

struct row {
	const char *text;
	size_t len, cap;
	const char *want;
};
#define TEXT(s) s, sizeof(s) - 1
static const struct row rows[] = {
        {TEXT(""), 8, ""},
        {TEXT("plain"), 8, "plain"},
        {TEXT("seven c"), 8, "seven c"},
        {TEXT("eight ch"), 8, "eigh..."},
        {TEXT("a\nb\tc\rd"), 64, "a\\nb\\tc\\rd"},
        {TEXT("a\0b\x1b[1m\x7f"), 64, "a\\x00b\\x1b[1m\\x7f"},
        {TEXT("\xc2\x85\xe2\x80\xa8\xe2\x80\xae\xef\xbb\xbf"), 64, "\\u0085\\u2028\\u202e\\ufeff"},
        {TEXT("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), 64, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {TEXT("\xd8\x9c\xe2\x81\xa6\xe2\x80\x8f\xe2\x81\xa0"), 64, "\\u061c\\u2066\\u200f\\u2060"},
        {TEXT("\xf3\xa0\x81\x81\xef\xb7\x90\xc2\xad"), 64, "\\ue0041\\ufdd0\\u00ad"},
        {TEXT("caf\xe9 \xff"), 64, "caf\\xe9 \\xff"},
        {TEXT("\xf0\x9f\x98"), 64, "\\xf0\\x9f\\x98"},
        {TEXT("abc\xe2\x82\xac\xe2\x82\xac"), 9, "abc..."},
        {TEXT("abc\xe2\x82\xac\xe2\x82\xac"), 10, "abc\xe2\x82\xac\xe2\x82\xac"},
        {TEXT("abcde\x01z"), 9, "abcde..."},
        {TEXT("back\\slash"), 64, "back\\slash"},
};

static void text_is_shown_on_one_line_and_within_its_room(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char out[80];
		memset(out, '#', sizeof out);
		size_t n = text_show(out, rows[i].cap, rows[i].text, rows[i].len);
		assert_string_equal(out, rows[i].want);
		assert_int_equal(n, strlen(rows[i].want));
		assert_true(n < rows[i].cap);
		assert_int_equal(out[rows[i].cap], '#');
	}
}

static void code_points_are_those_of_the_standard(void **state)
{
	static const struct {
		const char *text;
		uint32_t want;
	} points[] = {{"A", 'A'},
	              {"\x7f", 0x7f},
	              {"\xc2\x80", 0x80},
	              {"\xdf\xbf", 0x7ff},
	              {"\xe0\xa0\x80", 0x800},
	              {"\xef\xbf\xbf", 0xffff},
	              {"\xf0\x90\x80\x80", 0x10000},
	              {"\xf4\x8f\xbf\xbf", 0x10ffff}};
	for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
		size_t n = utf8_char_len(points[i].text, strlen(points[i].text));
		assert_int_equal(n, strlen(points[i].text));
		assert_int_equal(text_code_point(points[i].text, n), points[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(text_is_shown_on_one_line_and_within_its_room),
	        cmocka_unit_test(code_points_are_those_of_the_standard),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
