// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the web-config file is read strictly, and basic auth lets in whom it names, at a price that nobody
// can raise. TLS and changes of the file: test/integration/run-exporter-web.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/web_auth.h"
#include "exporter/web_config.h"

#define ERRORS_MAX (64 * 1024)
#define HASH       "$2b$04$z9XG/CFGUeNfFsn4yFsM9e4AE.911RI5RUzGk8f4H9ASZmoUUD6qq" // of "secret"
#define HASH_10    "$2y$10$abcdefghijklmnopqrstuug7uV/rfOsuPOAUg70eqWWWMjvHc6jZm" // of "other"
#define HASH_A     "$2a$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW" // of "secret"

static int parse(const char *text, struct web_config *c, struct buf *errors, struct err *e)
{
	buf_init(errors, ERRORS_MAX);
	return web_config_parse(c, "etc/web.yml", text, strlen(text), errors, e);
}

static void a_whole_file_is_read(void **state)
{
	(void)state;
	struct web_config c;
	struct buf errors;
	struct err e;
	assert_int_equal(parse("tls_server_config:\n"
	                       "  cert_file: server.crt\n"
	                       "  key_file: /keys/server.key\n"
	                       "  client_auth_type: VerifyClientCertIfGiven\n"
	                       "  client_ca_file: ca.crt\n"
	                       "  min_version: TLS13\n"
	                       "http_server_config: {http2: false}\n"
	                       "basic_auth_users:\n"
	                       "  prometheus: " HASH "\n"
	                       "  other: '" HASH_10 "'\n"
	                       "rate_limit: {interval: 100ms, burst: 3}\n",
	                       &c, &errors, &e),
	                 0);
	assert_string_equal(c.cert_file, "etc/server.crt");
	assert_string_equal(c.key_file, "/keys/server.key");
	assert_string_equal(c.client_ca_file, "etc/ca.crt");
	assert_int_equal(c.client_auth, HTTP_CLIENT_AUTH_VERIFY_IF_GIVEN);
	assert_int_equal(c.tls_min_minor, 3);
	assert_int_equal(c.tls_max_minor, 3);
	assert_int_equal(c.n_users, 2);
	assert_string_equal(c.users[0].name, "prometheus");
	assert_string_equal(c.users[0].hash, HASH);
	assert_string_equal(c.users[1].hash, HASH_10);
	assert_int_equal(c.rate_interval_ms, 100);
	assert_int_equal(c.rate_burst, 3);
	web_config_done(&c);
	buf_done(&errors);
}

static void an_empty_file_changes_nothing(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "# nothing\n", "{}", "tls_server_config:\nbasic_auth_users:\n"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct web_config c;
		struct buf errors;
		struct err e;
		assert_int_equal(parse(texts[i], &c, &errors, &e), 0);
		assert_null(c.cert_file);
		assert_int_equal(c.n_users, 0);
		assert_int_equal(c.rate_interval_ms, 0);
		web_config_done(&c);
		buf_done(&errors);
	}
}

static void faults_are_told_with_their_place(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
	        {"tls_server_config: {cert_file: a}\n", "etc/web.yml:1:1: tls_server_config.key_file: "},
	        {"tls_server_config:\n  cert_file: a\n  key_file: b\n  client_auth_type: Maybe\n",
	         "etc/web.yml:4:21: tls_server_config.client_auth_type: "},
	        {"tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireAndVerifyClientCert}\n",
	         "a client_ca_file is needed"},
	        {"tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}\n", "is of no use without"},
	        {"tls_server_config: {cert_file: a, key_file: b, min_version: TLS13, max_version: TLS12}\n",
	         "is below min_version"},
	        {"tls_server_config: {cert_file: a, key_file: b, min_version: TLS10}\n", "min_version"},
	        {"tls_server_config: {cert_file: a, key_file: b, cipher_suites: [X]}\n", "not supported"},
	        {"http_server_config: {headers: {X: y}}\n", "not supported"},
	        {"tls_sever_config: {}\n", "tls_server_config"},
	        {"basic_auth_users: [a]\n", "must be a map"},
	        {"basic_auth_users:\n  a: secret\n",
	         "etc/web.yml:2:6: basic_auth_users: the value of user \"a\" is no"},
	        {"basic_auth_users:\n  a: {b: c}\n", "must be a bcrypt hash"},
	        {"basic_auth_users:\n  a: $2x$04$z9XG/CFGUeNfFsn4yFsM9e4AE.911RI5RUzGk8f4H9ASZmoUUD6qq\n",
	         "is no bcrypt"},
	        {"basic_auth_users:\n  a: $2b$04$z9XG/CFGUeNfFsn4yFsM9e4AE.911RI5RUzGk8f4H9ASZmoUUD6q\n",
	         "is no bcrypt"},
	        {"basic_auth_users:\n  a: $2b$04$z9XG/CFGUeNfFsn4yFsM9e4AE.911RI5RUzGk8f4H9ASZmoUUD6q-\n",
	         "is no bcrypt"},
	        {"basic_auth_users:\n  a: $2b$0x$z9XG/CFGUeNfFsn4yFsM9e4AE.911RI5RUzGk8f4H9ASZmoUUD6qq\n",
	         "cost outside 04 .. 31"},
	        {"basic_auth_users:\n  a: $2b$13$z9XG/CFGUeNfFsn4yFsM9e4AE.911RI5RUzGk8f4H9ASZmoUUD6qq\n",
	         "cost above 12"},
	        {"basic_auth_users:\n  'a:b': " HASH "\n", "no colon"},
	        {"basic_auth_users:\n  '': " HASH "\n", "1 to 127 bytes"},
	        {"rate_limit: {interval: often}\n", "rate_limit.interval"},
	        {"rate_limit: {burst: 0}\n", "rate_limit.burst"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct web_config c;
		struct buf errors;
		struct err e = {.kind = ERR_NONE};
		if (parse(cases[i].text, &c, &errors, &e) != -1)
			fail_msg("accepted: %s", cases[i].text);
		assert_int_equal(e.kind, ERR_INPUT);
		if (!strstr(buf_str(&errors), cases[i].want))
			fail_msg("\"%s\" does not say \"%s\"", buf_str(&errors), cases[i].want);
		if (strstr(buf_str(&errors), "CFGUeNfF"))
			fail_msg("a hash is shown: %s", buf_str(&errors));
		buf_done(&errors);
	}
}

static void a_file_that_is_not_there_is_told(void **state)
{
	(void)state;
	struct web_config c;
	struct buf errors;
	struct err e;
	buf_init(&errors, ERRORS_MAX);
	assert_int_equal(web_config_read(&c, "/nonexistent/web.yml", &errors, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	buf_done(&errors);
}

static struct web_auth *auth_of(const char *hash)
{
	struct web_user users[2] = {{.name = "prometheus"}, {.name = "b"}};
	struct err e;
	memcpy(users[0].hash, hash, WEB_CONFIG_HASH_BYTES + 1);
	memcpy(users[1].hash, HASH_A, WEB_CONFIG_HASH_BYTES + 1);
	struct web_auth *a = web_auth_new(users, 2, &e);
	if (!a)
		print_message("%s\n", e.msg);
	assert_non_null(a);
	return a;
}

static void credentials_are_checked(void **state)
{
	(void)state;
	static const struct {
		const char *header;
		enum web_auth_result want;
	} cases[] = {
	        {"Basic cHJvbWV0aGV1czpzZWNyZXQ=", WEB_AUTH_GOOD}, // prometheus:secret
	        {"basic   cHJvbWV0aGV1czpzZWNyZXQ=", WEB_AUTH_GOOD},
	        {"Basic YjpzZWNyZXQ=", WEB_AUTH_GOOD},                // b:secret
	        {"Basic cHJvbWV0aGV1czpTZWNyZXQ=", WEB_AUTH_BAD},     // prometheus:Secret
	        {"Basic cHJvbWV0aGV1czo=", WEB_AUTH_BAD},             // prometheus:
	        {"Basic bm9ib2R5OnNlY3JldA==", WEB_AUTH_BAD},         // nobody:secret
	        {"Basic OnNlY3JldA==", WEB_AUTH_BAD},                 // :secret
	        {"Basic cHJvbWV0aGV1cw==", WEB_AUTH_BAD},             // prometheus
	        {"Basic cHJvbWV0aGV1czpzZWNyZXQ", WEB_AUTH_BAD},      // no padding
	        {"Basic cHJvbWV0aGV1czpzZWNyZXQ=x", WEB_AUTH_BAD},    //
	        {"Basic cHJvbWV0aGV1czpzZWNyZXQAeA==", WEB_AUTH_BAD}, // a NUL behind the password
	        {"Basic ====", WEB_AUTH_BAD},
	        {"Basic ", WEB_AUTH_BAD},
	        {"Basic", WEB_AUTH_BAD},
	        {"Bearer cHJvbWV0aGV1czpzZWNyZXQ=", WEB_AUTH_BAD},
	        {"", WEB_AUTH_BAD},
	        {NULL, WEB_AUTH_BAD},
	};
	struct web_auth *a = auth_of(HASH);
	int64_t now_ms = 0;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		now_ms += WEB_AUTH_TRY_MS;
		if (web_auth_check(a, cases[i].header, now_ms) != cases[i].want)
			fail_msg("%s", cases[i].header ? cases[i].header : "(none)");
	}
	char *large = malloc(WEB_AUTH_HEADER_BYTES_MAX + 5);
	assert_non_null(large);
	memset(large, 'A', WEB_AUTH_HEADER_BYTES_MAX + 4);
	memcpy(large, "Basic ", 6);
	large[WEB_AUTH_HEADER_BYTES_MAX + 4] = '\0';
	assert_int_equal(web_auth_check(a, large, now_ms), WEB_AUTH_BAD);
	free(large);
	web_auth_free(a);
}

static void tries_are_bounded_and_a_known_password_costs_none(void **state)
{
	(void)state;
	static const char good[] = "Basic cHJvbWV0aGV1czpzZWNyZXQ=", bad[] = "Basic cHJvbWV0aGV1czpTZWNyZXQ=";
	struct web_auth *a = auth_of(HASH);
	int64_t now_ms = 1000000;
	assert_int_equal(web_auth_check(a, good, now_ms), WEB_AUTH_GOOD);
	for (int i = 1; i < WEB_AUTH_TRIES_BURST; i++)
		assert_int_equal(web_auth_check(a, bad, now_ms), WEB_AUTH_BAD);
	for (int i = 0; i < 100; i++)
		assert_int_equal(web_auth_check(a, bad, now_ms), WEB_AUTH_LATER);
	for (int i = 0; i < 100; i++)
		assert_int_equal(web_auth_check(a, good, now_ms), WEB_AUTH_GOOD);
	now_ms += WEB_AUTH_TRY_MS;
	assert_int_equal(web_auth_check(a, bad, now_ms), WEB_AUTH_BAD);
	assert_int_equal(web_auth_check(a, bad, now_ms), WEB_AUTH_LATER);
	// What was kept is the good password's: no other one passes for it.
	assert_int_equal(web_auth_check(a, "Basic YjpTZWNyZXQ=", now_ms), WEB_AUTH_LATER);
	web_auth_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_whole_file_is_read),
	        cmocka_unit_test(an_empty_file_changes_nothing),
	        cmocka_unit_test(faults_are_told_with_their_place),
	        cmocka_unit_test(a_file_that_is_not_there_is_told),
	        cmocka_unit_test(credentials_are_checked),
	        cmocka_unit_test(tries_are_bounded_and_a_known_password_costs_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
