// SPDX-License-Identifier: Apache-2.0
// Goal of this test: tables line up whatever stands in them, and ages read as kubectl's do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
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
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_string_equal(table_age(now_ms - rows[i].seconds * 1000, now_ms).text, rows[i].want);
	assert_string_equal(table_age(0, now_ms).text, "<unknown>");
	assert_string_equal(table_age(1, INT64_MAX).text, "292471208y");
}

static void columns_line_up(void **state)
{
	(void)state;
	struct table t;
	struct buf out;
	buf_init(&out, 65536);
	table_init(&t, "NAME\tWHAT\tAGE");
	table_put(&t, "%s\t%d", "a", 12345);
	table_put(&t, "3d");
	table_put(&t, "\xc3\xbcn\xc3\xaf\t%s\t%s", "", "two\nlines\t\x1b[31m");
	table_print(&t, &out, 2, true);
	assert_string_equal(buf_str(&out), "  NAME   WHAT    AGE\n"
	                                   "  a      12345   3d\n"
	                                   "  \xc3\xbcn\xc3\xaf            two\\nlines\\t\\x1b[31m\n");
	// Rows that come later stand below.
	buf_reset(&out);
	table_put(&t, "b");
	table_put(&t, "x");
	table_put(&t, "1s");
	table_print(&t, &out, 0, false);
	assert_string_equal(buf_str(&out), "b      x       1s\n");
	table_done(&t);
	buf_done(&out);
}

static void empty_table_is_its_head(void **state)
{
	(void)state;
	struct table t;
	struct buf out;
	buf_init(&out, 65536);
	table_init(&t, "NAME");
	table_print(&t, &out, 0, true);
	assert_string_equal(buf_str(&out), "NAME\n");
	table_done(&t);
	buf_done(&out);
}

static void column_of_wide_tables_is_left_out_of_narrow_ones(void **state)
{
	(void)state;
	static const char *const want[] = {"NAME   AGE\na      <none>\nb      5s\n",
	                                   "NODE     NAME   MESSAGE   AGE\nn        a      <none>    <none>\n"
	                                   "<none>   b      +why      5s\n"};
	for (int wide = 0; wide < 2; wide++) {
		struct table t;
		struct buf out;
		buf_init(&out, 65536);
		table_init_wide(&t, "+NODE\tNAME\t+MESSAGE\tAGE", wide, NULL);
		table_put(&t, "%s\t%s\t%s\t%s", "n", "a", table_or_none(NULL), table_since(0, 5000).text);
		table_put(&t, "%s\t%s\t%s", table_or_none(""), "b", table_or_none("+why"));
		table_put(&t, "%s", table_since(1000, 6000).text);
		table_finish(&t, &out, 0, true);
		assert_string_equal(buf_str(&out), want[wide]);
		buf_done(&out);
	}
}

static void cell_too_long_is_cut_visibly(void **state)
{
	(void)state;
	char text[2 * TABLE_CELL_BYTES];
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	struct table t;
	struct buf out;
	buf_init(&out, 65536);
	table_init(&t, "A\tB");
	table_put(&t, "%s", text);
	table_put(&t, "y");
	table_print(&t, &out, 0, false);
	assert_int_equal(out.len, TABLE_CELL_BYTES - 1 + 3 + 2);
	assert_non_null(strstr(buf_str(&out), "xxx...   y\n"));
	table_done(&t);
	buf_done(&out);
}

static void add_row(struct table *t, const char *name, const char *text)
{
	table_put(t, "%s", name);
	table_put(t, "%s", text);
	table_put(t, "3d");
}

static void table_too_wide_for_the_terminal_wraps_between_words(void **state)
{
	(void)state;
	struct table t;
	struct buf out;
	buf_init(&out, 65536);
	table_init(&t, "NAME\tADVICE\tAGE");
	assert_int_equal(t.columns, 0); // a test has no terminal
	t.columns = 30;
	add_row(&t, "serving/llama-70b", "ask for more replicas of it");
	add_row(&t, "b", "none");
	table_print(&t, &out, 0, true);
	assert_string_equal(buf_str(&out), "NAME         ADVICE        AGE\n"
	                                   "serving/     ask for       3d\n"
	                                   "llama-70b    more\n"
	                                   "             replicas of\n"
	                                   "             it\n"
	                                   "b            none          3d\n");
	table_done(&t);
	buf_done(&out);
}

static void part_longer_than_the_terminal_is_not_cut(void **state)
{
	(void)state;
	struct table t;
	struct buf out;
	buf_init(&out, 65536);
	table_init(&t, "A\tB");
	t.columns = 10;
	table_put(&t, "abcdefghijklmnop");
	table_put(&t, "x  y");
	table_print(&t, &out, 0, false);
	assert_string_equal(buf_str(&out), "abcdefghijklmnop x\n"
	                                   "                  y\n");
	table_done(&t);
	buf_done(&out);
}

static enum table_tone tone_of(const char *word)
{
	return strcmp(word, "Missing") == 0 ? TONE_BAD : TONE_PLAIN;
}

static void state_is_coloured_only_where_colours_are_wanted(void **state)
{
	(void)state;
	struct buf out;
	buf_init(&out, 65536);
	for (int forced = 0; forced < 2; forced++) {
		struct table t;
		if (forced)
			setenv("CLICOLOR_FORCE", "1", 1);
		table_init_wide(&t, "!STATE\tAGE", false, tone_of);
		table_put(&t, "Missing\t3d");
		table_put(&t, "None\tMissing");
		table_print(&t, &out, 0, true);
		table_done(&t);
	}
	unsetenv("CLICOLOR_FORCE");
	assert_string_equal(buf_str(&out), "STATE     AGE\nMissing   3d\nNone      Missing\n"
	                                   "STATE     AGE\n\033[31mMissing\033[0m   3d\nNone      Missing\n");
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(ages_read_as_kubectl_prints_them),
	        cmocka_unit_test(columns_line_up),
	        cmocka_unit_test(empty_table_is_its_head),
	        cmocka_unit_test(column_of_wide_tables_is_left_out_of_narrow_ones),
	        cmocka_unit_test(cell_too_long_is_cut_visibly),
	        cmocka_unit_test(table_too_wide_for_the_terminal_wraps_between_words),
	        cmocka_unit_test(part_longer_than_the_terminal_is_not_cut),
	        cmocka_unit_test(state_is_coloured_only_where_colours_are_wanted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
