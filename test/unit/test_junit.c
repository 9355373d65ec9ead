// SPDX-License-Identifier: Apache-2.0
// The JUnit report: counts that add up, and texts that any XML parser takes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "policies/test/test_report.h"

static void report_has_suites_cases_and_their_sums(void **state)
{
	(void)state;
	struct junit j;
	struct buf out;
	junit_init(&j, 1 << 20);
	buf_init(&out, 1 << 20);
	junit_begin_suite(&j, "a_test.yaml");
	junit_add(&j,
	          &(struct junit_case){
	                  .name = "one", .file = "a_test.yaml", .line = 3, .seconds = 0.25, .outcome = JUNIT_PASSED});
	junit_add(&j, &(struct junit_case){.name = "two",
	                                   .file = "a_test.yaml",
	                                   .seconds = 0.5,
	                                   .outcome = JUNIT_FAILED,
	                                   .detail = "\n  first line\n  second line\n"});
	junit_end_suite(&j);
	junit_begin_suite(&j, "b_test.yaml");
	junit_add(&j, &(struct junit_case){.name = "three", .file = "b_test.yaml", .outcome = JUNIT_SKIPPED});
	junit_end_suite(&j);
	assert_int_equal(junit_print(&j, &out), 0);
	assert_string_equal(
	        buf_str(&out),
	        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	        "<testsuites name=\"gpuscale test\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" "
	        "time=\"0.750\">\n"
	        "  <testsuite name=\"a_test.yaml\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\" "
	        "time=\"0.750\">\n"
	        "    <testcase name=\"one\" classname=\"a_test.yaml\" file=\"a_test.yaml\" line=\"3\" "
	        "time=\"0.250\"/>\n"
	        "    <testcase name=\"two\" classname=\"a_test.yaml\" file=\"a_test.yaml\" time=\"0.500\">\n"
	        "      <failure type=\"failure\" message=\"first line\">\n  first line\n  second line\n</failure>\n"
	        "    </testcase>\n"
	        "  </testsuite>\n"
	        "  <testsuite name=\"b_test.yaml\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"1\" "
	        "time=\"0.000\">\n"
	        "    <testcase name=\"three\" classname=\"b_test.yaml\" file=\"b_test.yaml\" "
	        "time=\"0.000\"><skipped/></testcase>\n"
	        "  </testsuite>\n"
	        "</testsuites>\n");
	buf_done(&out);
	junit_done(&j);
}

static void texts_are_escaped(void **state)
{
	(void)state;
	static const struct {
		const char *name, *want;
	} rows[] = {
	        {"a < b && \"c\" > d", "name=\"a &lt; b &amp;&amp; &quot;c&quot; &gt; d\""},
	        {"two\nlines\rand\ttab", "name=\"two&#10;lines&#13;and\ttab\""},
	        {"esc\033[31m nul-like \001", "name=\"esc\xef\xbf\xbd[31m nul-like \xef\xbf\xbd\""},
	        {"bad \xff\xc0 utf8", "name=\"bad \xef\xbf\xbd\xef\xbf\xbd utf8\""},
	        {"\xef\xbf\xbe gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\x80",
	         "name=\"\xef\xbf\xbd gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\x80\""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct junit j;
		struct buf out;
		junit_init(&j, 1 << 20);
		buf_init(&out, 1 << 20);
		junit_begin_suite(&j, rows[i].name);
		junit_add(&j,
		          &(struct junit_case){
		                  .name = rows[i].name, .file = "f", .outcome = JUNIT_FAILED, .detail = rows[i].name});
		junit_end_suite(&j);
		assert_int_equal(junit_print(&j, &out), 0);
		const char *first = strstr(buf_str(&out), rows[i].want); // of the suite
		assert_non_null(first);
		assert_non_null(strstr(first + 1, rows[i].want)); // of the case
		assert_null(strchr(buf_str(&out), '\033'));
		buf_done(&out);
		junit_done(&j);
	}
}

static void report_past_its_ceiling_is_an_error_not_half_a_file(void **state)
{
	(void)state;
	struct junit j;
	struct buf out;
	junit_init(&j, 200);
	buf_init(&out, 1 << 20);
	junit_begin_suite(&j, "x");
	for (int i = 0; i < 10; i++)
		junit_add(&j, &(struct junit_case){.name = "a test with a name", .file = "x", .outcome = JUNIT_PASSED});
	junit_end_suite(&j);
	assert_int_equal(junit_print(&j, &out), -1);
	buf_done(&out);
	junit_done(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(report_has_suites_cases_and_their_sums),
	        cmocka_unit_test(texts_are_escaped),
	        cmocka_unit_test(report_past_its_ceiling_is_an_error_not_half_a_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
