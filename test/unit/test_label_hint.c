// SPDX-License-Identifier: Apache-2.0
// The query that counts the series under another name of a label.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cli/policy/lint_source.h"

static const struct {
	const char *query, *hint, *written, *other; // hint NULL: none
} rows[] = {
        {"sum(rate(x{exported_namespace=\"a\"}[5m]))",
         "count(x{namespace=\"a\"}) unless count(x{exported_namespace=\"a\"})", "exported_namespace", "namespace"},
        {"avg(x{pod=~\"a.*\", job=\"j\"})",
         "count(x{exported_pod=~\"a.*\", job=\"j\"}) unless count(x{pod=~\"a.*\", job=\"j\"})", "pod", "exported_pod"},
        // Labels with the prefix decide: the others are those of the scrape.
        {"x{namespace=\"s\",exported_pod=\"p\",exported_container!=\"c\"}",
         "count(x{namespace=\"s\",pod=\"p\",container!=\"c\"}) unless "
         "count(x{namespace=\"s\",exported_pod=\"p\",exported_"
         "container!=\"c\"})",
         "exported_pod", "pod"},
        // The first selector with such a label, as a whole: a brace in a text closes nothing.
        {"y / {__name__=\"x\", namespace=\"a}\"} * z{pod=\"p\"}",
         "count({__name__=\"x\", exported_namespace=\"a}\"}) unless count({__name__=\"x\", namespace=\"a}\"})",
         "namespace", "exported_namespace"},
        {"sum by (namespace) (x{job=\"j\"})", NULL, NULL, NULL},
        {"x{exported_=\"a\"}", NULL, NULL, NULL},
        {"vector(1)", NULL, NULL, NULL},
        {"x{pod=\"p\"", NULL, NULL, NULL},
        {"", NULL, NULL, NULL},
};

static void label_has_its_other_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf out;
		char written[LINT_LABEL_BYTES], other[LINT_LABEL_BYTES];
		buf_init(&out, 4096);
		bool has_hint = lint_source_label_query(rows[i].query, &out, written, other);
		if (has_hint != (rows[i].hint != NULL))
			fail_msg("%s: %s", rows[i].query, buf_str(&out));
		if (has_hint) {
			assert_string_equal(buf_str(&out), rows[i].hint);
			assert_string_equal(written, rows[i].written);
			assert_string_equal(other, rows[i].other);
		}
		buf_done(&out);
	}
}

static void query_beyond_the_limit_gives_no_hint(void **state)
{
	(void)state;
	for (size_t max = 1; max < strlen(rows[0].hint); max++) {
		struct buf out;
		char written[LINT_LABEL_BYTES], other[LINT_LABEL_BYTES];
		buf_init(&out, max);
		assert_false(lint_source_label_query(rows[0].query, &out, written, other));
		buf_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(label_has_its_other_name),
	        cmocka_unit_test(query_beyond_the_limit_gives_no_hint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
