// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/label_selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const struct label labels[] = {{"empty", ""}, {"example.com/tier", "gold"}, {"in", "notin"},
                                      {"n", "5"},    {"policy", "llama"},          {"signal", "queue"}};

static void selector_matches_as_the_api_servers_does(void **state)
{
	static const struct {
		const char *text;
		bool matches;
	} rows[] = {
	        {"", true},
	        {"  ", true},
	        {"policy=llama", true},
	        {"policy==llama", true},
	        {"policy = llama", true},
	        {"policy=mistral", false},
	        {"policy!=mistral", true},
	        {"policy!=llama", false},
	        {"absent!=x", true}, // != is true of what is not there
	        {"absent=", false},
	        {"empty=", true},
	        {"empty==", true},
	        {"empty=,policy", true},
	        {"policy=", false},
	        {"policy", true},
	        {"absent", false},
	        {"!absent", true},
	        {"! absent", true},
	        {"!policy", false},
	        {"policy in (llama)", true},
	        {"policy in (mistral, llama)", true},
	        {"policy in(mistral)", false},
	        {"absent in (x)", false},
	        {"policy notin (mistral)", true},
	        {"policy notin (mistral,llama)", false},
	        {"absent notin (x)", true},
	        {"empty in ()", true},
	        {"empty in (,)", true},
	        {"empty in (a,,b)", true},
	        {"policy in (a,,b)", false},
	        {"policy=llama,signal=queue", true},
	        {"policy=llama,signal=other", false},
	        {"policy=llama , !absent,signal in (queue,other)", true},
	        {"example.com/tier=gold", true},
	        {"example.com/tier notin (gold)", false},
	        {"n>4", true},
	        {"n > 5", false},
	        {"n<6", true},
	        {"policy>1", false}, // not a number
	        {"absent<1", false},
	        {"in in (in, notin)", true}, // keywords are words where a word must stand
	        {"in=notin", true},
	        {"notin", false},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e;
		struct label_selector *s = label_selector_parse(rows[i].text, &e);
		if (!s)
			fail_msg("\"%s\": %s", rows[i].text, e.msg);
		if (label_selector_matches(s, labels, COUNT(labels)) != rows[i].matches)
			fail_msg("\"%s\": wanted %d", rows[i].text, rows[i].matches);
		label_selector_free(s);
	}
	struct label_selector *all = label_selector_parse(NULL, NULL);
	assert_true(label_selector_matches(all, NULL, 0));
	label_selector_free(all);
}

static void invalid_selector_is_refused_with_its_position(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
	        {",", "expected a label key or '!', found \",\""},
	        {"a,", "the selector ends where a label key or '!' is expected"},
	        {"a,,b", "expected a label key or '!', found \",\""},
	        {"=x", "expected a label key or '!', found \"=\""},
	        {"a b", "expected an operator"},
	        {"a=b c", "expected ',' or the end, found \"c\""},
	        {"a=b=c", "expected ',' or the end, found \"=\""},
	        {"a===b", "expected a value, found \"=\""},
	        {"a=!b", "expected a value, found \"!\""},
	        {"a=(b)", "expected a value, found \"(\""},
	        {"!", "ends where a label key"},
	        {"!!a", "expected a label key, found \"!\""},
	        {"!a=b", "expected ',' or the end, found \"=\""},
	        {"!a in (b)", "expected ',' or the end, found \"in\""},
	        {"a!", "expected an operator"},
	        {"a in", "ends where '('"},
	        {"a in b", "expected '(', found \"b\""},
	        {"a in (b", "ends where ',' or ')'"},
	        {"a in (b c)", "expected ',' or ')', found \"c\""},
	        {"a in (b))", "expected ',' or the end, found \")\""},
	        {"a in (=)", "expected ',' or ')', found \"=\""},
	        {"a>", "whole number"},
	        {"a>b", "whole number"},
	        {"a>1.5", "whole number"},
	        {"a>9223372036854775808", "whole number"},
	        {"a=-b", "invalid label value \"-b\""},
	        {"a=b_", "invalid label value \"b_\""},
	        {"a=x/y", "invalid label value \"x/y\""},
	        {"a in (b,c*)", "invalid label value \"c*\""},
	        {"-a", "invalid label key \"-a\""},
	        {"/a", "invalid label key \"/a\""},
	        {"Example.com/a", "invalid label key"},
	        {"example..com/a", "invalid label key"},
	        {"example.com/", "invalid label key"},
	        {"a/b/c", "invalid label key"},
	        {"a=\xff", "invalid label value"},
	        {"a=0123456789012345678901234567890123456789012345678901234567890123", "invalid label value"},
	        {"a0123456789012345678901234567890123456789012345678901234567890123", "invalid label key"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = {0};
		struct label_selector *s = label_selector_parse(rows[i].text, &e);
		if (s)
			fail_msg("\"%s\" was taken", rows[i].text);
		assert_int_equal(e.kind, ERR_INPUT);
		if (!strstr(e.msg, rows[i].says))
			fail_msg("\"%s\": %s", rows[i].text, e.msg);
	}
}

static void selector_past_its_ceilings_is_refused_with_both_numbers(void **state)
{
	char text[LABEL_SELECTOR_BYTES_MAX + 2];
	struct err e;
	size_t n = 0;
	for (int i = 0; i <= LABEL_SELECTOR_REQUIREMENTS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%sk%d", i ? "," : "", i);
	assert_null(label_selector_parse(text, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	*strrchr(text, ',') = '\0';
	struct label_selector *s = label_selector_parse(text, &e);
	assert_non_null(s);
	label_selector_free(s);

	n = (size_t)snprintf(text, sizeof text, "k in (v");
	for (int i = 0; i < LABEL_SELECTOR_VALUES_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, ",%d", i);
	snprintf(text + n, sizeof text - n, ")");
	assert_null(label_selector_parse(text, &e));
	assert_int_equal(e.kind, ERR_LIMIT);

	memset(text, ' ', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_null(label_selector_parse(text, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	text[LABEL_SELECTOR_BYTES_MAX] = '\0';
	s = label_selector_parse(text, &e);
	assert_non_null(s);
	label_selector_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(selector_matches_as_the_api_servers_does),
	        cmocka_unit_test(invalid_selector_is_refused_with_its_position),
	        cmocka_unit_test(selector_past_its_ceilings_is_refused_with_both_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
