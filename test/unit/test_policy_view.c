// SPDX-License-Identifier: Apache-2.0
// Goal of this test: one object that cannot be read hides none of the others, neither policies nor Events, and of many
// Events the latest are shown.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_span.h"
#include "cli/objects/cmd_describe.h"
#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_fetch.h"

#define POLICY(name, more)                                                                                             \
	"{\"kind\":\"GPUAutoscaler\",\"metadata\":{\"namespace\":\"ml\",\"name\":\"" name "\"" more                    \
	"},\"spec\":{\"scaleTargetRef\":{\"name\":\"a\"}}}"

static void odd_object_hides_no_other(void **state)
{
	(void)state;
	static const struct {
		const char *odd, *fault;
	} rows[] = {
	        {POLICY("odd", ",\"annotations\":{\"a\":\"x\\u0000y\"}"), "ml/odd: JSON 1:"},
	        {POLICY("odd", ",\"annotations\":{\"a\":\"\xff\"}"), "ml/odd: JSON 1:"},
	        {POLICY("odd", ",\"annotations\":{\"a\":\"\\ud800\"}"), "ml/odd: JSON 1:"},
	        {POLICY("odd", ",\"number\":1000000000000000000000000000000000000000000000000000000000000000"),
	         "ml/odd: JSON 1:"},
	        {"{\"kind\":\"Secret\",\"metadata\":{\"namespace\":\"ml\",\"name\":\"odd\"}}", "ml/odd: the server"},
	        {"{\"kind\":\"GPUAutoscaler\",\"metadata\":{\"namespace\":\"ml\",\"name\":\"../x\"}}",
	         "an object without a valid name: the server"},
	        {"null", "an object without a valid name: "},
	        {"7", "an object without a valid name: "},
	        {"[]", "an object without a valid name: "},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char list[4096];
		struct policy_views v;
		struct err e;
		snprintf(list, sizeof list, "{\"items\":[%s,%s,%s]}", POLICY("a", ""), rows[i].odd, POLICY("b", ""));
		policy_views_init(&v, OBJECT_POLICY);
		if (kube_pages_each("policies", list, strlen(list), policy_views_add_item, &v, &e) < 0)
			fail_msg("row %zu: %s", i, e.msg);
		assert_int_equal(v.n, 2);
		assert_string_equal(v.items[0].name, "a");
		assert_string_equal(v.items[1].name, "b");
		assert_int_equal(v.n_faults, 1);
		if (strncmp(v.faults[0], rows[i].fault, strlen(rows[i].fault)) != 0)
			fail_msg("row %zu: %s", i, v.faults[0]);
		policy_views_done(&v);
	}
}

static void text_that_is_not_a_list_is_an_error(void **state)
{
	(void)state;
	static const char *const texts[] = {
	        "", "<html>", "{}", "[]", "{\"items\":null}", "{\"items\":{}}", "{\"items\":[", "{\"items\":[]"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct policy_views v;
		struct policy_events events;
		struct err e;
		policy_views_init(&v, OBJECT_POLICY);
		policy_events_init(&events);
		assert_int_equal(kube_pages_each("policies", texts[i], strlen(texts[i]), policy_views_add_item, &v, &e),
		                 -1);
		assert_int_equal(e.kind, ERR_PROTOCOL);
		assert_int_equal(kube_pages_each("Events", texts[i], strlen(texts[i]), policy_events_add, &events, &e),
		                 -1);
		assert_int_equal(e.kind, ERR_PROTOCOL);
		policy_views_done(&v);
	}
}

static void of_many_events_the_latest_are_kept(void **state)
{
	(void)state;
	struct policy_events events;
	struct err e;
	policy_events_init(&events);
	for (int page = 0; page < 6; page++) { // in an order unrelated to time, as when sorted by name
		char text[64 * 1024];
		size_t len = (size_t)snprintf(text, sizeof text, "{\"items\":[null,{\"message\":\"old\"}");
		for (int i = 0; i < 100; i++) {
			int at = (page * 100 + i) * 7 % 600;
			len += (size_t)snprintf(text + len, sizeof text - len,
			                        ",{\"lastTimestamp\":\"2026-01-01T%02d:%02d:00Z\",\"count\":%d,"
			                        "\"message\":\"at \\u0000%d\"}",
			                        at / 60, at % 60, at + 1, at);
		}
		len += (size_t)snprintf(text + len, sizeof text - len, "]}");
		assert_int_equal(kube_pages_each("Events", text, len, policy_events_add, &events, &e), 0);
	}
	assert_int_equal(events.total, 612);
	assert_int_equal(events.n, POLICY_EVENTS_SHOWN_MAX);
	for (int i = 0; i < POLICY_EVENTS_SHOWN_MAX; i++) {
		char want[32];
		// 600 moments, each a multiple of 7 modulo 600: all of them, once
		snprintf(want, sizeof want, "at ?%d", 599 - i);
		assert_string_equal(events.items[i].message, want);
		assert_int_equal(events.items[i].count, 600 - i);
	}
	struct buf out;
	buf_init(&out, 64 * 1024);
	policy_events_render(&events, &out, 1767225600000);
	assert_non_null(strstr(buf_str(&out), "(the newest 20 of 612)"));
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(odd_object_hides_no_other),
	        cmocka_unit_test(text_that_is_not_a_list_is_an_error),
	        cmocka_unit_test(of_many_events_the_latest_are_kept),
	};
	return cmocka_run_group_tests_name("policy_view", tests, NULL, NULL);
}
