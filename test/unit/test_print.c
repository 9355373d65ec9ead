// SPDX-License-Identifier: Apache-2.0
// Goal of this test: text from outside stays on its line, in its cell and without power over a terminal, in whatever
// conversion it is printed; numbers come out as printf writes them.
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/csv_text.h"
#include "base/print.h"
#include "base/xml_text.h"

#define HOSTILE                                                                                                        \
	"\x1b]8;;http://x\x1b\\a\n\xe2\x80\xae"                                                                        \
	"b\xc2\x9b"                                                                                                    \
	"c\xff\t"
#define SHOWN "\\x1b]8;;http://x\\x1b\\a\\n\\u202eb\\u009bc\\xff\\t"

static void expect(struct buf *out, const char *want)
{
	assert_false(out->failed);
	assert_string_equal(buf_str(out), want);
	buf_reset(out);
}

static void strings_are_escaped_and_the_format_is_not(void **state)
{
	struct buf out;
	buf_init(&out, 4096);
	print_to(&out, "a\n\t%s|%c|%s\n", HOSTILE, '\x1b', "plain");
	expect(&out, "a\n\t" SHOWN "|\\x1b|plain\n");
	buf_done(&out);
}

static void widths_count_what_is_shown(void **state)
{
	struct buf out;
	buf_init(&out, 4096);
	print_to(&out, "%-6s|%6s|%-*s|%*s|%-3s|", "\x1b", "\n", 5, "caf\xc3\xa9", -5, "x", "toolong");
	expect(&out, "\\x1b  |    \\n|caf\xc3\xa9 |x    |toolong|");
	print_to(&out, "%.3s|%.*s|%.4s|%5.1s|", "abcdef", 2, "xyz", "caf\xc3\xa9", "qr");
	expect(&out, "abc|xy|caf|    q|");
	char unterminated[] = {'a', '\xc3', '\xa9', 'z'};
	print_to(&out, "%.*s|%.*s", 3, unterminated, 2, unterminated);
	expect(&out, "a\xc3\xa9|a");
	buf_done(&out);
}

static void numbers_are_those_of_printf(void **state)
{
	struct buf out, want;
	buf_init(&out, 4096);
	buf_init(&want, 4096);
#define SAME(...)                                                                                                      \
	do {                                                                                                           \
		print_to(&out, __VA_ARGS__);                                                                           \
		buf_printf(&want, __VA_ARGS__);                                                                        \
		expect(&out, buf_str(&want));                                                                          \
		buf_reset(&want);                                                                                      \
	} while (0)
	SAME("%d %i %5d %-5d| %05d %+d % d %d", 1, -2, 3, 4, 5, 6, 7, INT32_MIN);
	SAME("%u %x %#X %o %hhu %hd", 4000000000u, 255u, 255u, 8u, (unsigned char)200, (short)-3);
	SAME("%zu %ld %lld %llu %jd %td", (size_t)-1, -1L, (long long)INT64_MIN, (unsigned long long)UINT64_MAX,
	     (intmax_t)-5, (ptrdiff_t)-6);
	SAME("%" PRId64 " %" PRIu64 " %" PRId32 " %8" PRId64, INT64_C(-7), UINT64_C(8), 9, INT64_C(10));
	SAME("%f %.2f %8.3f %-8.1f| %g %.10g %e %+.2f %.*f", 1.5, 2.345, 3.0, 4.0, 1e-9, 1.0 / 3, 5e10, -0.5, 3, 2.0);
	SAME("%f %g %.0f%% %g", (double)INFINITY, (double)NAN, 99.5, -0.0);
	SAME("%% %*d|%-*d|%.3d", 6, 1, 6, 2, 7);
	buf_done(&out);
	buf_done(&want);
}

static void full_buffer_is_reported(void **state)
{
	struct buf out;
	buf_init(&out, 8);
	assert_int_equal(print_to(&out, "%s", "12345678"), 0);
	assert_int_equal(print_to(&out, "%3s", "9"), -1);
	assert_true(out.failed);
	buf_done(&out);
	buf_init(&out, 4);
	assert_int_equal(print_to(&out, "%8s", "1"), -1);
	buf_done(&out);
}

// What `write_it` puts on descriptor `fd`, at most 1 KiB.
static const char *captured(int fd, void (*write_it)(const struct buf *), const struct buf *text, char out[1024])
{
	int ends[2], saved = dup(fd);
	fflush(stdout);
	assert_int_equal(pipe(ends), 0);
	assert_true(dup2(ends[1], fd) >= 0);
	write_it(text);
	fflush(stdout);
	assert_true(dup2(saved, fd) >= 0);
	close(saved);
	close(ends[1]);
	ssize_t n = read(ends[0], out, 1023);
	close(ends[0]);
	out[n > 0 ? n : 0] = '\0';
	return out;
}

static void write_out(const struct buf *text)
{
	assert_int_equal(print_out(text), 0);
}

static void write_error(const struct buf *text)
{
	print_error("gpuscale: %s: %d\n", buf_str(text), 7);
}

static void streams_escape_what_no_writer_escaped(void **state)
{
	struct buf text;
	char got[1024];
	buf_init(&text, 4096);
	buf_puts(&text, "NAME\tX\n"
	                "a\x1b[31mb\x1b[0m\r\xe2\x80\xae\xff\x7f caf\xc3\xa9\n");
	assert_string_equal(captured(STDOUT_FILENO, write_out, &text, got),
	                    "NAME\tX\n"
	                    "a\\x1b[31mb\\x1b[0m\\r\\u202e\\xff\\x7f caf\xc3\xa9\n");
	assert_string_equal(captured(STDERR_FILENO, print_notes, &text, got),
	                    "NAME\tX\n"
	                    "a\\x1b[31mb\\x1b[0m\\r\\u202e\\xff\\x7f caf\xc3\xa9\n");
	buf_reset(&text);
	buf_puts(&text, HOSTILE);
	assert_string_equal(captured(STDERR_FILENO, write_error, &text, got), "gpuscale: " SHOWN ": 7\n");
	buf_done(&text);
}

static void failed_report_is_not_written(void **state)
{
	struct buf text;
	buf_init(&text, 2);
	buf_puts(&text, "abc");
	assert_int_equal(print_out(&text), -1);
	buf_done(&text);
}

static void cells_of_csv_are_quoted_and_defused(void **state)
{
	static const struct {
		const char *text, *cell;
	} rows[] = {
	        {"", ""},
	        {"team-a/llm_0.b:1", "team-a/llm_0.b:1"},
	        {"NVIDIA H100 80GB", "NVIDIA H100 80GB"},
	        {"a,b", "\"a,b\""},
	        {"a;b", "\"a;b\""},
	        {"say \"hi\"", "\"say \"\"hi\"\"\""},
	        {"a\nb\rc", "a\\nb\\rc"},
	        {"=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""},
	        {"+1", "\"'+1\""},
	        {"-1", "\"'-1\""},
	        {"@SUM(A1)", "\"'@SUM(A1)\""},
	        {"\t=1", "\"'\\t=1\""},
	        {"\r=1", "\"'\\r=1\""},
	        {"\n=1", "\"'\\n=1\""},
	        {" =1", "\"' =1\""},
	        {"\xef\xbc\x9d"
	         "1",
	         "\"'\xef\xbc\x9d"
	         "1\""}, // full-width
	        {"\x1b[31m\xe2\x80\xae", "\\x1b[31m\\u202e"},
	        {"caf\xc3\xa9", "caf\xc3\xa9"},
	};
	struct buf out;
	buf_init(&out, 4096);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		csv_put_text(&out, rows[i].text);
		expect(&out, rows[i].cell);
	}
	buf_done(&out);
}

static void markup_is_escaped_and_order_is_kept(void **state)
{
	struct buf out;
	buf_init(&out, 4096);
	xml_put_text(&out, "</script>&\"'\r\n\t\x1b\xff\xe2\x80\xae\xe2\x81\xa6\xc2\x85\xd8\x9c caf\xc3\xa9");
	expect(&out, "&lt;/script&gt;&amp;&quot;&#39;&#13;\n\t\xef\xbf\xbd\xef\xbf\xbd\\u202e\\u2066\\u0085\\u061c "
	             "caf\xc3\xa9");
	print_xml(&out, "<b title=\"%s\">%d%% %.*s%c</b>", "<\xff>", 5, 2, "a&b", '<');
	expect(&out, "<b title=\"&lt;\xef\xbf\xbd&gt;\">5% a&amp;&lt;</b>");
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(strings_are_escaped_and_the_format_is_not),
	        cmocka_unit_test(widths_count_what_is_shown),
	        cmocka_unit_test(numbers_are_those_of_printf),
	        cmocka_unit_test(full_buffer_is_reported),
	        cmocka_unit_test(streams_escape_what_no_writer_escaped),
	        cmocka_unit_test(failed_report_is_not_written),
	        cmocka_unit_test(cells_of_csv_are_quoted_and_defused),
	        cmocka_unit_test(markup_is_escaped_and_order_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
