// SPDX-License-Identifier: Apache-2.0
// Goal of this test: what a reply of an OTLP/HTTP endpoint means for the request and for its next attempt.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/err.h"
#include "exporter/otlp/otlp_push.h"

static void path_is_appended_once(void **state)
{
	(void)state;
	static const struct {
		const char *endpoint, *url;
	} rows[] = {
	        {"http://h:4318", "http://h:4318/v1/metrics"},
	        {"http://h:4318/", "http://h:4318/v1/metrics"},
	        {"http://h:4318/v1/metrics", "http://h:4318/v1/metrics"},
	        {"http://h:4318/v1/metrics/", "http://h:4318/v1/metrics"},
	        {"https://h/otlp/v1/traces", "https://h/otlp/v1/traces/v1/metrics"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char url[OTLP_URL_BYTES];
		assert_int_equal(otlp_url(rows[i].endpoint, url, NULL), 0);
		assert_string_equal(url, rows[i].url);
	}
}

static void url_above_the_ceiling_is_refused(void **state)
{
	(void)state;
	static char endpoint[OTLP_URL_BYTES], url[OTLP_URL_BYTES];
	struct err e;
	memset(endpoint, 'a', sizeof endpoint - 1);
	assert_int_equal(otlp_url(endpoint, url, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
}

static void reply_decides_about_the_next_attempt(void **state)
{
	(void)state;
	static const struct {
		int status;
		const char *body;
		enum otlp_outcome outcome;
		int64_t rejected;
		const char *why;
	} rows[] = {
	        {200, "", OTLP_ACCEPTED, 0, ""},
	        {200, "{}", OTLP_ACCEPTED, 0, ""},
	        {202, "not JSON", OTLP_ACCEPTED, 0, ""},
	        {200, "{\"partialSuccess\":{}}", OTLP_ACCEPTED, 0, ""},
	        {200, "{\"partialSuccess\":{\"errorMessage\":\"a hint\"}}", OTLP_ACCEPTED, 0, ""},
	        {200, "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"too old\"}}", OTLP_PARTIAL, 3,
	         "the endpoint rejected 3 items: too old"},
	        {200, "{\"partialSuccess\":{\"rejectedDataPoints\":2}}", OTLP_PARTIAL, 2,
	         "the endpoint rejected 2 items"},
	        {200, "{\"partialSuccess\":{\"rejectedSpans\":\"-3\"}}", OTLP_ACCEPTED, 0, ""},
	        {200, "{\"partialSuccess\":[3]}", OTLP_ACCEPTED, 0, ""},
	        {400, "bad\nline", OTLP_GIVEN_UP, 0, "status 400: bad\\nline"},
	        {401, "", OTLP_GIVEN_UP, 0, "status 401"},
	        {429, "", OTLP_AGAIN, 0, "status 429"},
	        {500, "", OTLP_GIVEN_UP, 0, "status 500"},
	        {503, "busy", OTLP_AGAIN, 0, "status 503: busy"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct otlp_delivery d = {0};
		char why[OTLP_WHY_BYTES];
		assert_int_equal(otlp_delivery_take(&d, rows[i].status, rows[i].body, strlen(rows[i].body), NULL, why),
		                 rows[i].outcome);
		assert_string_equal(why, rows[i].why);
		if (rows[i].outcome == OTLP_PARTIAL)
			assert_int_equal(d.rejected, rows[i].rejected);
	}
}

static void attempts_are_bounded_and_their_pauses_grow(void **state)
{
	(void)state;
	struct otlp_delivery d = {0};
	char why[OTLP_WHY_BYTES];
	struct err e = {.kind = ERR_NONE};
	err_set(&e, ERR_UNREACHABLE, "cannot connect");
	for (int round = 0; round < 2; round++) { // a request that was given up leaves nothing for the next
		int64_t step_ms = OTLP_PAUSE_MS;
		for (int i = 1; i < OTLP_ATTEMPTS_MAX; i++, step_ms *= 2) {
			assert_int_equal(otlp_delivery_take(&d, 0, NULL, 0, &e, why), OTLP_AGAIN);
			assert_in_range(d.wait_ms, step_ms / 2, step_ms);
		}
		assert_int_equal(otlp_delivery_take(&d, 0, NULL, 0, &e, why), OTLP_GIVEN_UP);
		assert_string_equal(why, "cannot connect");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(path_is_appended_once),
	        cmocka_unit_test(url_above_the_ceiling_is_refused),
	        cmocka_unit_test(reply_decides_about_the_next_attempt),
	        cmocka_unit_test(attempts_are_bounded_and_their_pauses_grow),
	};
	return cmocka_run_group_tests_name("otlp_delivery", tests, NULL, NULL);
}
