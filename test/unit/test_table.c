// SPDX-License-Identifier: Apache-2.0
// Goal of this test: tables line up whatever stands in them, and ages read as kubectl's do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cli/term/table.h"

static void ages_read_as_kubectl_prints_them(void **state)
{
	(void)state;
	static const struct {
		int64_t seconds;
		const char *want;
	} rows[] = {
	        {-5, "0s"},
	        {0, "0s"},
	        {119, "119s"},
	        {120, "2m"},
	        {125, "2m5s"},
	        {599, "9m59s"},
	        {600, "10m"},
	        {659, "10m"},
	        {3 * 3600 - 1, "179m"},
	        {3 * 3600, "3h"},
	        {3 * 3600 + 61, "3h1m"},
	        {8 * 3600 - 1, "7h59m"},
	        {8 * 3600, "8h"},
	        {48 * 3600 - 1, "47h"},
	        {48 * 3600, "2d"},
	        {50 * 3600, "2d2h"},
	        {8 * 86400 - 1, "7d23h"},
	        {8 * 86400, "8d"},
	        {729 * 86400, "729d"},
	        {730 * 86400, "2y"},
	        {731 * 86400, "2y1d"},
	        {8LL * 365 * 86400 - 1, "7y364d"},
	        {8LL * 365 * 86400, "8y"},
	        {100LL * 365 * 86400 + 86400, "100y"},
	};
	const int64_t now_ms = 4000000000000;
	char age[TABLE_AGE_BYTES];
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_string_equal(table_age(age, now_ms - rows[i].seconds * 1000, now_ms), rows[i].want);
	assert_string_equal(table_age(age, 0, now_ms), "<unknown>");
	assert_string_equal(table_age(age, 1, INT64_MAX), "292471208y");
}

static void columns_line_up(void **state)
{
	(void)state;
	static const char *const head[] = {"NAME", "WHAT", "AGE", NULL};
	struct table t;
	struct buf out;
	buf_init(&out, 65536);
	table_init(&t, head);
	table_cell(&t, "%s", "a");
	table_cell(&t, "%d", 12345);
	table_cell(&t, "3d");
	table_cell(&t, "\xc3\xbcn\xc3\xaf");
	table_cell(&t, "%s", "");
	table_cell(&t, "two\nlines\x1b[31m");
	table_print(&t, &out, 2, true);
	assert_string_equal(buf_str(&out), "  NAME   WHAT    AGE\n"
	                                   "  a      12345   3d\n"
	                                   "  \xc3\xbcn\xc3\xaf            two\\nlines\\x1b[31m\n");
	// Rows that come later stand below.
	buf_reset(&out);
	table_cell(&t, "b");
	table_cell(&t, "x");
	table_cell(&t, "1s");
	table_print(&t, &out, 0, false);
	assert_string_equal(buf_str(&out), "b      x       1s\n");
	table_done(&t);
	buf_done(&out);
}

static void empty_table_is_its_head(void **state)
{
	(void)state;
	static const char *const head[] = {"NAME", NULL};
	struct table t;
	struct buf out;
	buf_init(&out, 65536);
	table_init(&t, head);
	table_print(&t, &out, 0, true);
	assert_string_equal(buf_str(&out), "NAME\n");
	table_done(&t);
	buf_done(&out);
}

static void cell_too_long_is_cut_visibly(void **state)
{
	(void)state;
	static const char *const head[] = {"A", "B", NULL};
	char text[2 * TABLE_CELL_BYTES];
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	struct table t;
	struct buf out;
	buf_init(&out, 65536);
	table_init(&t, head);
	table_cell(&t, "%s", text);
	table_cell(&t, "y");
	table_print(&t, &out, 0, false);
	assert_int_equal(out.len, TABLE_CELL_BYTES - 1 + 3 + 2);
	assert_non_null(strstr(buf_str(&out), "xxx...   y\n"));
	table_done(&t);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(ages_read_as_kubectl_prints_them),
	        cmocka_unit_test(columns_line_up),
	        cmocka_unit_test(empty_table_is_its_head),
	        cmocka_unit_test(cell_too_long_is_cut_visibly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
