// SPDX-License-Identifier: Apache-2.0
// Goal of this test: options and queries that cannot work, or would smuggle something into a request, are refused
// before anything is sent, with the reason and without showing a secret.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/promql_fixture.h"
#include "test/support/promql_short.h"

static void test_unusable_options_are_refused(void **state)
{
	static const char *const injected[] = {"X-A: b\r\nX-C: d", NULL};
	static const char *const nameless[] = {": b", NULL};
	static const char *const colonless[] = {"X-A", NULL};
	static const char *const spaced[] = {"X A: b", NULL};
	static const char *const own[] = {"content-type: text/plain", NULL};
	static const char *const length[] = {"Content-Length: 1", NULL};
	static const char *many[HTTP_HEADERS_MAX + 1];
	for (size_t i = 0; i < HTTP_HEADERS_MAX; i++)
		many[i] = "X-A: b";
	struct promql_fixture *f = *state;
	char long_url[3000] = "http://h/";
	memset(long_url + 9, 'a', sizeof long_url - 10);
	promql_fixture_write(f, "a\r\nX-Evil: 1\n");
	const struct {
		struct promql_options o;
		enum err_kind kind;
		const char *says;
	} rows[] = {
	        {{.url = NULL}, ERR_INPUT, "must look like"},
	        {{.url = ""}, ERR_INPUT, "must look like"},
	        {{.url = "ftp://h"}, ERR_INPUT, "must look like"},
	        {{.url = "http://"}, ERR_INPUT, "must look like"},
	        {{.url = "http:///x"}, ERR_INPUT, "must look like"},
	        {{.url = "http://:9090"}, ERR_INPUT, "must look like"},
	        {{.url = "http://h\r\nX: y"}, ERR_INPUT, "blank, control"},
	        {{.url = "http://user:hunter2@h"}, ERR_INPUT, "credentials"},
	        {{.url = "http://h/?a=b"}, ERR_INPUT, "'?'"},
	        {{.url = "http://h/#a"}, ERR_INPUT, "'#'"},
	        {{.url = long_url}, ERR_LIMIT, "2999 bytes; the ceiling is 2048"},
	        {{.url = "http://h", .timeout_ms = -1}, ERR_INPUT, "negative"},
	        {{.url = "http://h", .max_body_bytes = HTTP_BODY_BYTES_MAX + 1}, ERR_LIMIT, "16777217"},
	        {{.url = "http://h", .headers = injected}, ERR_INPUT, "X-A holds a control character"},
	        {{.url = "http://h", .headers = nameless}, ERR_INPUT, "Name: value"},
	        {{.url = "http://h", .headers = colonless}, ERR_INPUT, "Name: value"},
	        {{.url = "http://h", .headers = spaced}, ERR_INPUT, "Name: value"},
	        {{.url = "http://h", .headers = own}, ERR_INPUT, "content-type cannot be set"},
	        {{.url = "http://h", .headers = length}, ERR_INPUT, "Content-Length cannot be set"},
	        {{.url = "http://h", .headers = many}, ERR_LIMIT, "64 custom headers are given; the ceiling is 63"},
	        {{.url = "http://h", .bearer_token = "a\r\nX-Evil: 1"}, ERR_INPUT, "bearer token"},
	        {{.url = "http://h", .bearer_token = ""}, ERR_INPUT, "bearer token"},
	        {{.url = "http://h", .bearer_token_file = f->file}, ERR_INPUT, "control characters"},
	        {{.url = "http://h", .bearer_token_file = "/nonexistent/token"}, ERR_NOT_FOUND, "/nonexistent/token"},
	        {{.url = "http://h", .bearer_token_file = "/dev/null"}, ERR_INPUT, "/dev/null is empty"},
	        {{.url = "http://h", .bearer_token_file = "/dev/zero"}, ERR_INPUT, "regular file"},
	        {{.url = "http://h", .bearer_token = "a", .bearer_token_file = f->file}, ERR_INPUT, "more than one"},
	        {{.url = "http://h", .bearer_token = "a", .basic_user = "b", .basic_password_file = f->file},
	         ERR_INPUT,
	         "more than one"},
	        {{.url = "http://h", .basic_user = "b"}, ERR_INPUT, "password file"},
	        {{.url = "http://h", .basic_password_file = f->file}, ERR_INPUT, "password file"},
	        {{.url = "http://h", .basic_user = "a:b", .basic_password_file = f->file}, ERR_INPUT, "':'"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct promql_options o = rows[i].o;
		o.http = f->http;
		struct err e = {0};
		if (promql_new(&o, &e))
			fail_msg("row %zu was accepted", i);
		if (e.kind != rows[i].kind || !strstr(e.msg, rows[i].says))
			fail_msg("row %zu: got %s \"%s\", want \"...%s...\"", i, err_kind_info(e.kind)->name, e.msg,
			         rows[i].says);
		assert_null(strstr(e.msg, "hunter2"));
		assert_null(strstr(e.msg, "Evil"));
	}
}

static void test_unusable_queries_are_refused_before_they_are_sent(void **state)
{
	struct promql_fixture *f = *state;
	struct promql *p = promql_fixture_open(f, (struct promql_options){0});
	struct err e = {0};
	static char longest[PROMQL_QUERY_BYTES_MAX + 2];
	memset(longest, 'a', PROMQL_QUERY_BYTES_MAX + 1);
	assert_int_equal(promql_query(p, longest, 0, promql_fixture_done, f, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "65537 bytes; the ceiling is 65536"));
	assert_int_equal(promql_query(p, "", 0, promql_fixture_done, f, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	assert_int_equal(promql_query(p, "up", -1, promql_fixture_done, f, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	static const struct {
		int64_t start_ms, end_ms, step_ms;
		enum err_kind kind;
		const char *says;
	} rows[] = {
	        {2000, 1000, 1, ERR_INPUT, "1000 ms before it starts"},
	        {-1, 1000, 1, ERR_INPUT, "before 1970"},
	        {0, 1000, 0, ERR_INPUT, "step"},
	        {0, 1000, -5, ERR_INPUT, "step"},
	        {0, 11001, 1, ERR_LIMIT, "11001 steps; the ceiling is 11000"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(promql_ask(p,
		                            &(struct promql_question){.query = "up",
		                                                      .is_range = true,
		                                                      .start_ms = rows[i].start_ms,
		                                                      .end_ms = rows[i].end_ms,
		                                                      .step_ms = rows[i].step_ms},
		                            promql_fixture_done, f, &e),
		                 -1);
		assert_int_equal(e.kind, rows[i].kind);
		assert_non_null(strstr(e.msg, rows[i].says));
	}
	assert_int_equal(
	        promql_ask(p,
	                   &(struct promql_question){
	                           .query = "up", .is_range = true, .start_ms = 0, .end_ms = 11000, .step_ms = 1},
	                   promql_fixture_done, f, &e),
	        0);
	promql_fixture_wait(f, 1);
	assert_int_equal(f->n_requests, 1);
	promql_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_unusable_options_are_refused, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_unusable_queries_are_refused_before_they_are_sent,
	                                        promql_fixture_setup, promql_fixture_teardown),
	};
	return cmocka_run_group_tests_name("promql_options", tests, NULL, NULL);
}
