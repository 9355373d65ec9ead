// SPDX-License-Identifier: Apache-2.0
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/http/http_client_internal.h"
#include "base/http/http_server_internal.h"
#include "test/support/certs.h"
#include "test/support/http_fixture.h"

static struct certs certs; // made once: keys cost time

static int make_certs(void **state)
{
	return certs_init(&certs);
}

static int remove_certs(void **state)
{
	certs_done(&certs);
	return 0;
}

static void serve(struct http_fixture *f, enum certs_file cert, enum certs_file client_ca)
{
	struct http_server_options o = {.tls_cert_file = certs.path[cert], .tls_key_file = certs.path[cert + 1]};
	if (client_ca != CERTS__COUNT)
		o.tls_client_ca_file = certs.path[client_ca];
	http_fixture_serve(f, o);
}

static void get(struct http_fixture *f, const char *host, const struct http_tls *tls)
{
	char url[128];
	snprintf(url, sizeof url, "https://%s:%d/headers?secret-query", host, http_server_port(f->server));
	http_fixture_fetch(
	        f, &(struct http_request){.method = "GET", .url = url, .tls = tls, .bearer_token = "secret-token"});
	assert_null(strstr(f->result.error.msg, "secret"));
}

static void trusted_server_is_accepted(void **state)
{
	struct http_fixture *f = *state;
	const struct http_tls by_file = {.ca_file = certs.path[CERTS_CA]}, by_pem = {.ca_pem = certs.pem[CERTS_CA]};
	const struct http_tls pem_wins = {.ca_pem = certs.pem[CERTS_CA], .ca_file = "/nonexistent/ca.pem"};
	const struct http_tls *const all[] = {&by_file, &by_pem, &pem_wins};
	serve(f, CERTS_SERVER, CERTS__COUNT);
	for (size_t i = 0; i < COUNT(all); i++) {
		get(f, "127.0.0.1", all[i]);
		if (f->result.status != 200)
			fail_msg("row %zu: %s", i, f->result.error.msg);
		assert_non_null(strstr(f->result.body, "auth=Bearer secret-token"));
		get(f, "localhost", all[i]);
		assert_int_equal(f->result.status, 200);
	}
}

static void tls_connections_are_kept(void **state)
{
	struct http_fixture *f = *state;
	struct http_server_stats stats;
	serve(f, CERTS_SERVER, CERTS__COUNT);
	for (int i = 0; i < 50; i++) {
		const struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
		get(f, "127.0.0.1", &tls);
		assert_int_equal(f->result.status, 200);
	}
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.accepted, 1);
}

static void settings_never_share_a_connection_with_laxer_ones(void **state)
{
	struct http_fixture *f = *state;
	const struct http_tls insecure = {.insecure_skip_verify = true};
	const struct http_tls wrong = {.ca_file = certs.path[CERTS_OTHER_CA]};
	serve(f, CERTS_SERVER, CERTS__COUNT);
	get(f, "127.0.0.1", &insecure);
	assert_int_equal(f->result.status, 200); // its connection is kept alive now
	get(f, "127.0.0.1", &wrong);
	http_fixture_assert_error(f, ERR_TLS, "not trusted");
}

static void calls_side_by_side_keep_their_own_settings(void **state)
{
	struct http_fixture *f = *state;
	const struct http_tls lax = {.insecure_skip_verify = true}, strict = {.ca_pem = certs.pem[CERTS_OTHER_CA]};
	enum { N = 8 };
	struct http_result *results = http_fixture_results(f, N);
	struct err e;
	char url[64];
	serve(f, CERTS_SERVER, CERTS__COUNT);
	snprintf(url, sizeof url, "https://127.0.0.1:%d/echo", http_server_port(f->server));
	for (size_t i = 0; i < N; i++) {
		struct http_request r = {
		        .method = "GET", .url = url, .tls = i % 2 ? &strict : &lax, .timeout_ms = FIXTURE_LIMIT_MS};
		assert_int_equal(http_client_submit(f->client, &r, http_result_keep, &results[i], NULL, &e), 0);
	}
	for (size_t i = 0; i < N; i++) {
		assert_true(test_loop_until(f->loop, &results[i].done, 1, FIXTURE_LIMIT_MS));
		if (results[i].status != (i % 2 ? 0 : 200) || results[i].error.kind != (i % 2 ? ERR_TLS : ERR_NONE))
			fail_msg("call %zu: status %d, %s", i, results[i].status, results[i].error.msg);
	}
}

static void server_of_an_unknown_authority_is_refused(void **state)
{
	struct http_fixture *f = *state;
	const struct http_tls other = {.ca_file = certs.path[CERTS_OTHER_CA]};
	serve(f, CERTS_SERVER, CERTS__COUNT);
	get(f, "127.0.0.1", &other);
	http_fixture_assert_error(
	        f, ERR_TLS,
	        "\"gpuscale test server\" is signed by \"gpuscale test CA\", which is not trusted; give "
	        "the CA certificate");
	get(f, "127.0.0.1", NULL); // the system's store does not know it either
	http_fixture_assert_error(f, ERR_TLS, "which is not trusted");
	const struct http_tls insecure = {.insecure_skip_verify = true};
	get(f, "127.0.0.1", &insecure);
	assert_int_equal(f->result.status, 200);
}

static void expired_certificate_is_refused_with_its_date(void **state)
{
	struct http_fixture *f = *state;
	const struct http_tls tls = {.ca_file = certs.path[CERTS_CA]};
	serve(f, CERTS_EXPIRED, CERTS__COUNT);
	get(f, "127.0.0.1", &tls);
	http_fixture_assert_error(f, ERR_TLS, "\"gpuscale expired server\" expired on 2021-01-01T00:00:00Z; renew it");
	// An error about this certificate is not reported for another server.
	http_fixture_serve(f, (struct http_server_options){0});
	get(f, "127.0.0.1", &tls);
	http_fixture_assert_error(f, ERR_TLS, "does not speak TLS");
}

static void certificate_for_another_name_is_refused_unless_that_name_is_asked_for(void **state)
{
	struct http_fixture *f = *state;
	struct http_tls tls = {.ca_file = certs.path[CERTS_CA]};
	serve(f, CERTS_OTHER_NAME, CERTS__COUNT);
	get(f, "127.0.0.1", &tls);
	http_fixture_assert_error(f, ERR_TLS,
	                          "not for \"127.0.0.1\"; use a name it is for, or set the TLS server name");
	tls.server_name = "third.gpuscale.test";
	get(f, "127.0.0.1", &tls);
	http_fixture_assert_error(f, ERR_TLS, "not for \"third.gpuscale.test\"");
	tls.server_name = "other.gpuscale.test";
	get(f, "127.0.0.1", &tls);
	if (f->result.status != 200)
		fail_msg("%s", f->result.error.msg);
	char host[64]; // the request still goes to the host of the URL
	snprintf(host, sizeof host, "host=127.0.0.1:%d", http_server_port(f->server));
	assert_non_null(strstr(f->result.body, host));
}

static void client_certificate_is_presented_when_configured(void **state)
{
	struct http_fixture *f = *state;
	const struct http_tls none = {.ca_file = certs.path[CERTS_CA]};
	const struct http_tls by_file = {.ca_file = certs.path[CERTS_CA],
	                                 .cert_file = certs.path[CERTS_CLIENT],
	                                 .key_file = certs.path[CERTS_CLIENT_KEY]};
	const struct http_tls by_pem = {.ca_pem = certs.pem[CERTS_CA],
	                                .cert_pem = certs.pem[CERTS_CLIENT],
	                                .key_pem = certs.pem[CERTS_CLIENT_KEY]};
	const struct http_tls wrong_key = {.ca_pem = certs.pem[CERTS_CA],
	                                   .cert_pem = certs.pem[CERTS_CLIENT],
	                                   .key_pem = certs.pem[CERTS_SERVER_KEY]};
	const struct http_tls missing = {
	        .ca_pem = certs.pem[CERTS_CA], .cert_file = "/nonexistent/c.pem", .key_file = "/nonexistent/k.pem"};
	serve(f, CERTS_SERVER, CERTS_CA);
	get(f, "127.0.0.1", &none);
	http_fixture_assert_error(f, ERR_TLS, "does it want another client certificate?");
	get(f, "127.0.0.1", &by_file);
	assert_int_equal(f->result.status, 200);
	get(f, "127.0.0.1", &wrong_key);
	http_fixture_assert_error(f, ERR_TLS, "key");
	get(f, "127.0.0.1", &by_pem);
	assert_int_equal(f->result.status, 200);
	get(f, "127.0.0.1", &missing);
	http_fixture_assert_error(f, ERR_TLS, "/nonexistent/c.pem");
}

static void named_pipe_in_place_of_a_file_is_refused_at_once(void **state)
{
	struct http_fixture *f = *state;
	char dir[] = "/tmp/tls-test-XXXXXX", path[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/pipe", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	const struct http_tls tls[] = {{.ca_file = path},
	                               {.cert_file = path, .key_file = certs.path[CERTS_CLIENT + 1]},
	                               {.cert_file = certs.path[CERTS_CLIENT], .key_file = path}};
	const struct http_server_options servers[] = {
	        {.tls_cert_file = path, .tls_key_file = certs.path[CERTS_SERVER + 1]},
	        {.tls_cert_file = certs.path[CERTS_SERVER], .tls_key_file = path},
	        {.tls_cert_file = certs.path[CERTS_SERVER],
	         .tls_key_file = certs.path[CERTS_SERVER + 1],
	         .tls_client_ca_file = path}};
	serve(f, CERTS_SERVER, 0);
	struct http_tls_set *set;
	struct err e;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(http_tls_get(f->client, &tls[i], &set, &e), -1);
		assert_non_null(strstr(e.msg, "pipe: expected a regular file, found a named pipe"));
		SSL_CTX *ctx;
		assert_int_equal(http_server_tls_new(&servers[i], &ctx, &e), -1);
		assert_non_null(strstr(e.msg, "pipe: expected a regular file, found a named pipe"));
	}
	unlink(path);
	rmdir(dir);
}

static void missing_or_broken_ca_is_an_error(void **state)
{
	struct http_fixture *f = *state;
	const struct http_tls missing = {.ca_file = "/nonexistent/ca.pem"}, broken = {.ca_pem = "not a certificate"};
	serve(f, CERTS_SERVER, CERTS__COUNT);
	get(f, "127.0.0.1", &missing);
	http_fixture_assert_error(f, ERR_TLS, "/nonexistent/ca.pem");
	get(f, "127.0.0.1", &broken);
	http_fixture_assert_error(f, ERR_TLS, "CA");
}

static void wrong_scheme_is_recognised(void **state)
{
	struct http_fixture *f = *state;
	get(f, "127.0.0.1", NULL); // https to a plain server
	http_fixture_assert_error(f, ERR_TLS, "does not speak TLS here; is it http://");
	serve(f, CERTS_SERVER, CERTS__COUNT);
	http_fixture_get(f, "/echo"); // http to a TLS server
	assert_true(f->result.error.kind == ERR_UNREACHABLE || f->result.error.kind == ERR_PROTOCOL);
}

static void server_that_never_shakes_hands_ends_at_the_connect_timeout(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step silence[] = {STEP(RAW_READ_REQUEST)};
	char url[64];
	http_fixture_play(f, silence, COUNT(silence));
	snprintf(url, sizeof url, "https://127.0.0.1:%d/", raw_server_port(f->raw));
	http_fixture_fetch(
	        f, &(struct http_request){
	                   .method = "GET", .url = url, .connect_timeout_ms = 100, .timeout_ms = FIXTURE_LIMIT_MS});
	http_fixture_assert_error(f, ERR_TIMEOUT,
	                          "no connection within 100 ms; is the address right, reachable, and does it");
	http_fixture_fetch(
	        f, &(struct http_request){
	                   .method = "GET", .url = url, .connect_timeout_ms = FIXTURE_LIMIT_MS, .timeout_ms = 300});
	http_fixture_assert_error(f, ERR_TIMEOUT,
	                          "no connection yet; is the address right, reachable, and does it speak TLS?");
}

static void server_settings_that_do_not_fit_are_refused(void **state)
{
	struct http_fixture *f = *state;
	const struct {
		const char *cert, *key, *ca, *part;
		enum err_kind kind;
	} table[] = {
	        {certs.path[CERTS_SERVER], NULL, NULL, "both needed", ERR_USAGE},
	        {NULL, NULL, certs.path[CERTS_CA], "both needed", ERR_USAGE},
	        {"/nonexistent/c.pem", certs.path[CERTS_SERVER_KEY], NULL, "/nonexistent/c.pem", ERR_TLS},
	        {certs.path[CERTS_SERVER], "/nonexistent/k.pem", NULL, "/nonexistent/k.pem", ERR_TLS},
	        {certs.path[CERTS_SERVER], certs.path[CERTS_CLIENT_KEY], NULL, "client-key.pem", ERR_TLS},
	        {certs.path[CERTS_SERVER], certs.path[CERTS_SERVER_KEY], "/nonexistent/ca.pem", "ca.pem", ERR_TLS},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		struct err e = {0};
		struct http_server *s =
		        http_server_new(&(struct http_server_options){.loop = f->loop,
		                                                      .listen = "127.0.0.1:0",
		                                                      .tls_cert_file = table[i].cert,
		                                                      .tls_key_file = table[i].key,
		                                                      .tls_client_ca_file = table[i].ca},
		                        &e);
		if (s || e.kind != table[i].kind || !strstr(e.msg, table[i].part))
			fail_msg("row %zu: %s: %s", i, err_kind_info(e.kind)->name, e.msg);
	}
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, http_fixture_setup, http_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(trusted_server_is_accepted),
	        TEST(tls_connections_are_kept),
	        TEST(settings_never_share_a_connection_with_laxer_ones),
	        TEST(calls_side_by_side_keep_their_own_settings),
	        TEST(server_of_an_unknown_authority_is_refused),
	        TEST(expired_certificate_is_refused_with_its_date),
	        TEST(certificate_for_another_name_is_refused_unless_that_name_is_asked_for),
	        TEST(client_certificate_is_presented_when_configured),
	        TEST(named_pipe_in_place_of_a_file_is_refused_at_once),
	        TEST(missing_or_broken_ca_is_an_error),
	        TEST(wrong_scheme_is_recognised),
	        TEST(server_that_never_shakes_hands_ends_at_the_connect_timeout),
	        TEST(server_settings_that_do_not_fit_are_refused),
	};
	return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
