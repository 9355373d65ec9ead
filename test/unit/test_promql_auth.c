// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a Prometheus that wants credentials gets them, rotated ones included, and no message shows one.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/support/certs.h"
#include "test/support/manual_clock.h"
#include "test/support/promql_fixture.h"

static void test_token_and_headers_go_with_every_query(void **state)
{
	struct promql_fixture *f = *state;
	const char *const headers[] = {"X-Scope-OrgID: tenant-1", NULL};
	struct promql *p =
	        promql_fixture_open(f, (struct promql_options){.bearer_token = "s3cret", .headers = headers});
	for (size_t i = 0; i < 3; i++) {
		promql_fixture_ask(f, p);
		promql_fixture_expect_ok(f);
		assert_string_equal(f->requests[i].authorization, "Bearer s3cret");
		assert_string_equal(f->requests[i].extra, "tenant-1");
	}
	promql_free(p);
}

static void test_basic_password_comes_from_its_file(void **state)
{
	struct promql_fixture *f = *state;
	promql_fixture_write(f, "open sesame\r\n");
	struct promql *p = promql_fixture_open(
	        f, (struct promql_options){.basic_user = "aladdin", .basic_password_file = f->file});
	promql_fixture_ask(f, p);
	promql_fixture_expect_ok(f);
	assert_string_equal(f->requests[0].authorization, "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ==");
	promql_free(p);
}

static void test_token_file_is_read_again_after_a_minute(void **state)
{
	struct promql_fixture *f = *state;
	promql_fixture_write(f, "old\n");
	struct promql *p = promql_fixture_open(f, (struct promql_options){.bearer_token_file = f->file});
	promql_fixture_write(f, "new\n");
	clock_advance_ms(&f->clock, PROMQL_SECRET_AGE_MS - 1);
	promql_fixture_ask(f, p);
	assert_string_equal(f->requests[0].authorization, "Bearer old");
	clock_advance_ms(&f->clock, 1);
	promql_fixture_ask(f, p);
	assert_string_equal(f->requests[1].authorization, "Bearer new");
	// A file that is gone for a moment costs nothing: the token in use goes on.
	unlink(f->file);
	clock_advance_ms(&f->clock, PROMQL_SECRET_AGE_MS);
	promql_fixture_ask(f, p);
	promql_fixture_expect_ok(f);
	assert_string_equal(f->requests[2].authorization, "Bearer new");
	promql_free(p);
}

static void test_after_a_401_the_new_token_is_tried_once(void **state)
{
	struct promql_fixture *f = *state;
	promql_fixture_write(f, "old");
	struct promql *p = promql_fixture_open(f, (struct promql_options){.bearer_token_file = f->file});
	promql_fixture_write(f, "new");
	f->replies[0] = (struct promql_reply){.status = 401, .type = "text/plain", .body = "token expired"};
	f->replies[1] = (struct promql_reply){.status = 200, .body = PROMQL_FIXTURE_BODY};
	f->n_replies = 2;
	promql_fixture_ask(f, p);
	promql_fixture_expect_ok(f);
	assert_int_equal(f->n_requests, 2);
	assert_string_equal(f->requests[0].authorization, "Bearer old");
	assert_string_equal(f->requests[1].authorization, "Bearer new");
	assert_string_equal(f->requests[1].body, f->requests[0].body);
	promql_free(p);
}

static void test_second_401_is_the_answer(void **state)
{
	struct promql_fixture *f = *state;
	promql_fixture_write(f, "old-secret");
	struct promql *p = promql_fixture_open(f, (struct promql_options){.bearer_token_file = f->file});
	f->replies[0] = (struct promql_reply){.status = 401, .type = "text/plain", .body = "token expired"};
	f->rotations[0] = "new-secret";
	f->replies[1] = f->replies[0];
	f->rotations[1] = "newest-secret"; // rotated once more: still no third try
	f->replies[2] = (struct promql_reply){.status = 200, .body = PROMQL_FIXTURE_BODY};
	f->n_replies = 3;
	promql_fixture_ask(f, p);
	assert_int_equal(f->n_requests, 2);
	assert_int_equal(f->e.kind, ERR_AUTH);
	assert_int_equal(f->e.code, 401);
	assert_non_null(strstr(f->e.msg, "HTTP 401: token expired"));
	assert_non_null(strstr(f->e.msg, f->url));
	assert_null(strstr(f->e.msg, "secret"));
	promql_free(p);
}

static void test_unchanged_token_is_not_tried_again(void **state)
{
	struct promql_fixture *f = *state;
	promql_fixture_write(f, "old");
	struct promql *p = promql_fixture_open(f, (struct promql_options){.bearer_token_file = f->file});
	f->replies[0] = (struct promql_reply){.status = 401, .type = "text/plain", .body = "no"};
	promql_fixture_ask(f, p);
	assert_int_equal(f->n_requests, 1);
	assert_int_equal(f->e.kind, ERR_AUTH);
	promql_free(p);
}

static void test_401_without_its_token_file_names_the_file(void **state)
{
	struct promql_fixture *f = *state;
	promql_fixture_write(f, "old");
	struct promql *p = promql_fixture_open(f, (struct promql_options){.bearer_token_file = f->file});
	unlink(f->file);
	f->replies[0] = (struct promql_reply){.status = 401, .type = "text/plain", .body = "no"};
	promql_fixture_ask(f, p);
	assert_int_equal(f->n_requests, 1);
	assert_int_equal(f->e.kind, ERR_AUTH);
	assert_int_equal(f->e.code, 401);
	assert_non_null(strstr(f->e.msg, f->file));
	promql_free(p);
}

static void test_ca_and_client_certificate_reach_the_connection(void **state)
{
	struct promql_fixture *f = *state;
	struct certs c;
	assert_int_equal(certs_init(&c), 0);
	promql_fixture_serve(f, (struct http_server_options){.tls_cert_file = c.path[CERTS_SERVER],
	                                                     .tls_key_file = c.path[CERTS_SERVER_KEY],
	                                                     .tls_client_ca_file = c.path[CERTS_CA]});
	static const struct {
		enum certs_file ca;
		bool with_client;
		enum err_kind kind;
	} rows[] = {{CERTS_CA, true, ERR_NONE}, {CERTS_CA, false, ERR_TLS}, {CERTS_OTHER_CA, true, ERR_TLS}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct http_tls tls = {.ca_file = c.path[rows[i].ca]};
		if (rows[i].with_client) {
			tls.cert_pem = c.pem[CERTS_CLIENT];
			tls.key_pem = c.pem[CERTS_CLIENT_KEY];
		}
		struct promql *p = promql_fixture_open(f, (struct promql_options){.tls = tls});
		promql_fixture_ask(f, p);
		if (f->e.kind != rows[i].kind)
			fail_msg("row %zu: got %s %s", i, err_kind_info(f->e.kind)->name, f->e.msg);
		promql_free(p);
	}
	certs_done(&c);
}

// A certificate that is taken back must not live on in a connection that is open.
static void test_replaced_certificates_count_from_the_next_query(void **state)
{
	struct promql_fixture *f = *state;
	struct certs c;
	struct err e;
	assert_int_equal(certs_init(&c), 0);
	promql_fixture_serve(f, (struct http_server_options){.tls_cert_file = c.path[CERTS_SERVER],
	                                                     .tls_key_file = c.path[CERTS_SERVER_KEY],
	                                                     .tls_client_ca_file = c.path[CERTS_CA]});
	struct promql *p = promql_fixture_open(f, (struct promql_options){.tls = {.ca_file = c.path[CERTS_OTHER_CA]}});
	const struct promql_credentials client = {
	        .ca_pem = c.pem[CERTS_CA], .cert_pem = c.pem[CERTS_CLIENT], .key_pem = c.pem[CERTS_CLIENT_KEY]};
	assert_int_equal(promql_set_credentials(p, &client, &e), 0);
	promql_fixture_ask(f, p);
	promql_fixture_expect_ok(f);
	assert_int_equal(promql_set_credentials(p, &(struct promql_credentials){0}, &e), 0);
	promql_fixture_ask(f, p);
	assert_int_equal(f->e.kind, ERR_TLS);
	promql_free(p);
	certs_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_token_and_headers_go_with_every_query, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_basic_password_comes_from_its_file, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_token_file_is_read_again_after_a_minute, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_after_a_401_the_new_token_is_tried_once, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_second_401_is_the_answer, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_unchanged_token_is_not_tried_again, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_401_without_its_token_file_names_the_file, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_replaced_certificates_count_from_the_next_query,
	                                        promql_fixture_setup, promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_ca_and_client_certificate_reach_the_connection,
	                                        promql_fixture_setup, promql_fixture_teardown),
	};
	return cmocka_run_group_tests_name("promql_auth", tests, NULL, NULL);
}
