// SPDX-License-Identifier: Apache-2.0
// The report of check for other programs, from lines as checkers write them and from lines of any other form.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/json/json_read.h"
#include "cli/policy/check_report.h"

static const struct check_counts none;

static void line_becomes_a_workflow_command(void **state)
{
	(void)state;
	static const struct {
		const char *line, *command;
	} rows[] = {
	        {"a.yaml:3:7: spec.interval: is 10ms: write 100ms",
	         "::error file=a.yaml,line=3,col=7::spec.interval: is 10ms: write 100ms\n"},
	        {"a.yaml:3:7: warning: spec.signals[1].query: 100% of x, y",
	         "::warning file=a.yaml,line=3,col=7::spec.signals[1].query: 100%25 of x, y\n"},
	        {"a.yaml:3:7: info: spec.x: text\n    excerpt: 1\n    ^^^",
	         "::notice file=a.yaml,line=3,col=7::spec.x: text\n"},
	        {"a.yaml:11: fixed: x is now y", "::notice file=a.yaml,line=11::x is now y\n"},
	        {"a, b.yaml:1:2: pool p is already defined",
	         "::error file=a%2C b.yaml,line=1,col=2::pool p is already defined\n"},
	        {"C:dir/a%.yaml:1:2: text", "::error file=C%3Adir/a%25.yaml,line=1,col=2::text\n"},
	        {"a.yaml: 36 more warnings", "::warning file=a.yaml::36 more warnings\n"},
	        {"a.yaml: 2 more notes", "::notice file=a.yaml::2 more notes\n"},
	        {"a.yaml: 1 more error", "::error file=a.yaml::1 more error\n"},
	        {"cannot read a.yaml: no such file", "::error::cannot read a.yaml: no such file\n"},
	        {"a.yaml:3", "::error::a.yaml:3\n"},
	        {"a.yaml:3:", "::error::a.yaml:3:\n"},
	        {"a.yaml:3: ", "::error file=a.yaml,line=3::\n"},
	        {"a.yaml:99999999999: text", "::error::a.yaml:99999999999: text\n"},
	        {":", "::error:::\n"},
	        {"", ""},
	        {"\n\n", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf out;
		buf_init(&out, 4096);
		check_report_write(&out, rows[i].line, &none, OUTPUT_GITHUB);
		assert_string_equal(buf_str(&out), rows[i].command);
		buf_done(&out);
	}
}

static void document_is_json_whatever_the_report_is(void **state)
{
	(void)state;
	static const char *const reports[] = {
	        "",
	        "a.yaml:1:1: \"quoted\": \\ text\nb \xff.yaml:2:2: spec.signals[12].[.]].x: y\n\n   \n::\n: \n:1: \n",
	        "a.yaml:1:1: spec.members[0].weight: x",
	};
	static const enum output_format formats[] = {OUTPUT_JSON, OUTPUT_SARIF};
	for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++)
		for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
			struct buf out;
			buf_init(&out, 65536);
			check_report_write(&out, reports[i], &none, formats[k]);
			struct cJSON *tree = json_read(buf_str(&out), out.len, NULL);
			assert_false(out.failed);
			assert_non_null(tree);
			cJSON_Delete(tree);
			buf_done(&out);
		}
}

static void reports_of_many_rules_have_each_once(void **state)
{
	(void)state;
	struct buf report, out;
	size_t n = 0;
	buf_init(&report, 1024 * 1024);
	buf_init(&out, 8 * 1024 * 1024);
	for (int i = 0; i < 2000; i++)
		buf_printf(&report, "a.yaml:%d:1: f%d: text\n", i + 1, i % 300);
	check_report_write(&out, buf_str(&report), &none, OUTPUT_SARIF);
	for (const char *p = buf_str(&out); (p = strstr(p, "\"id\": ")); p++)
		n++;
	assert_int_equal(n, 256); // further rules have no description
	buf_done(&report);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(line_becomes_a_workflow_command),
	        cmocka_unit_test(document_is_json_whatever_the_report_is),
	        cmocka_unit_test(reports_of_many_rules_have_each_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
