// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the web-config file is read strictly, and basic auth admits only its users, at a bounded cost that
// clients cannot raise. TLS and changes of the file: test/integration/run-exporter-web.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/page/web.h"

#define ERRORS_MAX (64 * 1024)
#define SCRAPER    "192.0.2.1"
#define HASH       "$2b$04$z9XG/CFGUeNfFsn4yFsM9e4AE.911RI5RUzGk8f4H9ASZmoUUD6qq" // of "secret"
#define HASH_10    "$2y$10$abcdefghijklmnopqrstuug7uV/rfOsuPOAUg70eqWWWMjvHc6jZm" // of "other"
#define HASH_A     "$2a$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW" // of "secret"

static int parse(const char *text, struct web_config *c, struct buf *errors, struct err *e)
{
	buf_init(errors, ERRORS_MAX);
	return web_config_parse(c, "etc/web.yml", text, strlen(text), errors, e);
}

static void whole_file_is_read(void **state)
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
	assert_string_equal(c.tls.tls_cert_file, "etc/server.crt");
	assert_string_equal(c.tls.tls_key_file, "/keys/server.key");
	assert_string_equal(c.tls.tls_client_ca_file, "etc/ca.crt");
	assert_int_equal(c.tls.tls_client_auth, HTTP_CLIENT_AUTH_VERIFY_IF_GIVEN);
	assert_int_equal(c.tls.tls_min_minor, 3);
	assert_int_equal(c.tls.tls_max_minor, 3);
	assert_int_equal(c.n_users, 2);
	assert_string_equal(c.users[0].name, "prometheus");
	assert_string_equal(c.users[0].hash, HASH);
	assert_string_equal(c.users[1].hash, HASH_10);
	assert_int_equal(c.rate_interval_ms, 100);
	assert_int_equal(c.rate_burst, 3);
	web_config_done(&c);
	buf_done(&errors);
}

static void empty_file_changes_nothing(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "# nothing\n", "{}", "tls_server_config:\nbasic_auth_users:\n"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct web_config c;
		struct buf errors;
		struct err e;
		assert_int_equal(parse(texts[i], &c, &errors, &e), 0);
		assert_null(c.tls.tls_cert_file);
		assert_int_equal(c.n_users, 0);
		assert_int_equal(c.rate_interval_ms, 0);
		web_config_done(&c);
		buf_done(&errors);
	}
}

static void errors_are_reported_with_their_position(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
	        {"tls_server_config: {cert_file: a}\n", "etc/web.yml:1:1: tls_server_config.key_file: "},
	        {"tls_server_config:\n  cert_file: a\n  key_file: b\n  client_auth_type: Maybe\n",
	         "etc/web.yml:4:21: tls_server_config.client_auth_type: "},
	        {"tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireAndVerifyClientCert}\n",
	         "needs a client_ca_file"},
	        {"tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}\n", "has no effect without"},
	        {"tls_server_config: {cert_file: a, key_file: b, min_version: TLS13, max_version: TLS12}\n",
	         "is below min_version"},
	        {"tls_server_config: {cert_file: a, key_file: b, min_version: TLS10}\n", "min_version"},
	        {"tls_server_config: {cert_file: a, key_file: b, cipher_suites: [X]}\n", "not supported"},
	        {"http_server_config: {headers: {X: y}}\n", "not supported"},
	        {"tls_sever_config: {}\n", "tls_server_config"},
	        {"basic_auth_users: [a]\n", "must be a map"},
	        {"basic_auth_users:\n  a: secret\n",
	         "etc/web.yml:2:6: basic_auth_users: the value of user \"a\" is not a"},
	        {"basic_auth_users:\n  a: {b: c}\n", "must be a bcrypt hash"},
	        {"basic_auth_users:\n  a: $2x$04$z9XG/CFGUeNfFsn4yFsM9e4AE.911RI5RUzGk8f4H9ASZmoUUD6qq\n",
	         "is not a bcrypt"},
	        {"basic_auth_users:\n  a: $2b$04$z9XG/CFGUeNfFsn4yFsM9e4AE.911RI5RUzGk8f4H9ASZmoUUD6q\n",
	         "is not a bcrypt"},
	        {"basic_auth_users:\n  a: $2b$04$z9XG/CFGUeNfFsn4yFsM9e4AE.911RI5RUzGk8f4H9ASZmoUUD6q-\n",
	         "is not a bcrypt"},
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

static void missing_file_is_reported(void **state)
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

// Returns a header with the i-th of many wrong passwords. Valid until the next call.
static const char *wrong_password(int i)
{
	static char header[64] = "Basic ";
	char plain[32];
	int len = snprintf(plain, sizeof plain, "prometheus:wrong%d", i);
	EVP_EncodeBlock((unsigned char *)header + 6, (const unsigned char *)plain, len);
	return header;
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
	        {"Basic bm9ib2R5OnNlY3JldA==", WEB_AUTH_BAD},         // an unknown user
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
		if (web_auth_check(a, cases[i].header, SCRAPER, now_ms) != cases[i].want)
			fail_msg("%s", cases[i].header ? cases[i].header : "(none)");
	}
	char *large = malloc(WEB_AUTH_HEADER_BYTES_MAX + 5);
	assert_non_null(large);
	memset(large, 'A', WEB_AUTH_HEADER_BYTES_MAX + 4);
	memcpy(large, "Basic ", 6);
	large[WEB_AUTH_HEADER_BYTES_MAX + 4] = '\0';
	assert_int_equal(web_auth_check(a, large, SCRAPER, now_ms), WEB_AUTH_BAD);
	free(large);
	web_auth_free(a);
}

static void tries_are_bounded_and_a_known_password_costs_none(void **state)
{
	(void)state;
	static const char good[] = "Basic cHJvbWV0aGV1czpzZWNyZXQ=";
	struct web_auth *a = auth_of(HASH);
	int64_t now_ms = 1000000;
	assert_int_equal(web_auth_check(a, good, SCRAPER, now_ms), WEB_AUTH_GOOD);
	for (int i = 0; i < WEB_AUTH_PEER_TRIES_BURST; i++)
		assert_int_equal(web_auth_check(a, wrong_password(i), SCRAPER, now_ms), WEB_AUTH_BAD);
	for (int i = 100; i < 200; i++)
		assert_int_equal(web_auth_check(a, wrong_password(i), SCRAPER, now_ms), WEB_AUTH_LATER);
	for (int i = 0; i < 100; i++)
		assert_int_equal(web_auth_check(a, good, SCRAPER, now_ms), WEB_AUTH_GOOD);
	struct web_auth *fresh = auth_of(HASH);
	for (int i = 0; i < WEB_AUTH_PEER_TRIES_BURST; i++)
		web_auth_check(fresh, wrong_password(i), SCRAPER, now_ms);
	now_ms += WEB_AUTH_PEER_TRY_MS;
	assert_int_equal(web_auth_check(fresh, wrong_password(200), SCRAPER, now_ms), WEB_AUTH_BAD);
	// What was kept is the good password's: no other one passes for it.
	assert_int_not_equal(web_auth_check(a, "Basic YjpTZWNyZXQ=", SCRAPER, now_ms), WEB_AUTH_GOOD);
	web_auth_free(fresh);
	web_auth_free(a);
}

static void flood_of_addresses_does_not_push_out_a_trusted_one(void **state)
{
	(void)state;
	static struct peer_rate r;
	char peer[PEER_RATE_NAME_BYTES];
	peer_rate_add(&r, SCRAPER, true, 0);
	for (int i = 0; i < 4 * PEER_RATE_PEERS_MAX; i++) {
		snprintf(peer, sizeof peer, "198.51.%d.%d", i / 250, i % 250);
		peer_rate_add(&r, peer, false, 1 + i);
	}
	assert_int_equal(r.n, PEER_RATE_PEERS_MAX);
	assert_true(peer_rate_find(&r, SCRAPER)->trusted);
	assert_non_null(peer_rate_find(&r, peer)); // the latest peer is in the table
	assert_null(peer_rate_find(&r, "198.51.0.0"));
	for (int i = 0; i < PEER_RATE_TRUSTED_MAX; i++) {
		snprintf(peer, sizeof peer, "203.0.113.%d", i);
		peer_rate_add(&r, peer, true, 100000 + i);
	}
	assert_null(peer_rate_find(&r, SCRAPER)); // only other trusted peers evict it
}

// A flood of different wrong passwords, and then the scraper's first login, from every position in the flood.
static void flood_from_one_peer_does_not_keep_out_the_scraper(void **state)
{
	(void)state;
	static const char good[] = "Basic cHJvbWV0aGV1czpzZWNyZXQ="; // prometheus:secret
	enum { FLOOD_FIRST, SCRAPER_FAILS_FIRST, SCRAPER_FIRST, ORDERS };
	for (int order = 0; order < ORDERS; order++) {
		struct web_auth *a = auth_of(HASH);
		int64_t now_ms = 1000000;
		int later = 0;
		if (order == SCRAPER_FAILS_FIRST)
			assert_int_equal(web_auth_check(a, "Basic cHJvbWV0aGV1czp3cm9uZw==", SCRAPER, now_ms),
			                 WEB_AUTH_BAD);
		if (order == SCRAPER_FIRST)
			assert_int_equal(web_auth_check(a, good, SCRAPER, now_ms), WEB_AUTH_GOOD);
		for (int i = 0; i < 2000; i++) {
			now_ms += 10;
			later += web_auth_check(a, wrong_password(i), "192.0.2.66", now_ms) == WEB_AUTH_LATER;
		}
		assert_true(later > 1900); // the flood costs no more than a few checks
		assert_int_equal(web_auth_check(a, good, SCRAPER, now_ms), WEB_AUTH_GOOD);
		web_auth_free(a);
	}
}

// Every address gets a first check; after that it cannot delay a new address.
static void flood_from_many_peers_delays_a_first_login_by_their_first_tries_at_most(void **state)
{
	(void)state;
	enum { PEERS = 40 };
	struct web_auth *a = auth_of(HASH);
	int64_t now_ms = 1000000;
	char peer[32];
	for (int i = 0; i < 100 * PEERS; i++) {
		now_ms += (PEERS - WEB_AUTH_TRIES_BURST) * WEB_AUTH_TRY_MS / (100 * PEERS) + 1;
		snprintf(peer, sizeof peer, "198.51.100.%d", i % PEERS);
		web_auth_check(a, wrong_password(i), peer, now_ms);
	}
	assert_int_equal(web_auth_check(a, "Basic cHJvbWV0aGV1czpzZWNyZXQ=", SCRAPER, now_ms + WEB_AUTH_TRY_MS),
	                 WEB_AUTH_GOOD);
	web_auth_free(a);
}

// Addresses of all kinds send wrong passwords for two minutes, a request each 2 ms. The scraper comes for the first
// time at every stage of the flood, and again every 15 s until its password is checked.
static void first_login_is_checked_while_any_number_of_addresses_fail(void **state)
{
	(void)state;
	enum { REQUEST_MS = 2, SCRAPE_MS = 15000, FLOOD_MS = 120000 };
	static const struct {
		const char *name, *scraper;
		int n;              // addresses of the flood, in turn
		int scrapes, later; // at most, of a scraper that comes at once, and of one that comes later
	} cases[] = {
	        {"360 addresses", SCRAPER, 360, 3, 1},
	        {"10,000 addresses", SCRAPER, 10000, 5, 4},
	        {"the host of a /64", "2001:db8:0:1::5", 0x10000, 2, 1},
	};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		for (int first_ms = 0; first_ms <= 30000; first_ms += 30000) {
			struct web_auth *a = auth_of(HASH);
			int scrapes = 0;
			enum web_auth_result r = WEB_AUTH_LATER;
			for (int ms = 0, i = 0; r == WEB_AUTH_LATER && ms < FLOOD_MS; ms += REQUEST_MS, i++) {
				char peer[64];
				int k = i % cases[c].n;
				if (strchr(cases[c].scraper, ':'))
					snprintf(peer, sizeof peer, "2001:db8::%x", k);
				else
					snprintf(peer, sizeof peer, "198.51.%d.%d", k / 250, k % 250);
				web_auth_check(a, wrong_password(i), peer, 1000000 + ms);
				if (ms < first_ms || (ms - first_ms) % SCRAPE_MS != 0)
					continue;
				scrapes++;
				r = web_auth_check(a, "Basic cHJvbWV0aGV1czpzZWNyZXQ=", cases[c].scraper, 1000000 + ms);
			}
			if (r != WEB_AUTH_GOOD || scrapes > (first_ms ? cases[c].later : cases[c].scrapes))
				fail_msg("%s, a scraper after %d ms: result %d at scrape %d", cases[c].name, first_ms,
				         (int)r, scrapes);
			web_auth_free(a);
		}
	}
}

// A changed web config clears the cached passwords, but keeps the trusted addresses.
static void peer_that_was_let_in_stays_trusted_when_the_file_changes(void **state)
{
	(void)state;
	static const char good[] = "Basic cHJvbWV0aGV1czpzZWNyZXQ=";
	int64_t now_ms = 1000000;
	char peer[32];
	struct web_auth *before = auth_of(HASH), *after = auth_of(HASH);
	assert_int_equal(web_auth_check(before, good, SCRAPER, now_ms), WEB_AUTH_GOOD);
	web_auth_inherit(after, before);
	web_auth_free(before);
	for (int i = 0; i < 1000; i++) {
		snprintf(peer, sizeof peer, "203.0.%d.%d", i / 250, i % 250);
		web_auth_check(after, wrong_password(i), peer, now_ms);
	}
	assert_int_equal(web_auth_check(after, good, "192.0.2.9", now_ms), WEB_AUTH_LATER); // new, as they are
	assert_int_equal(web_auth_check(after, good, SCRAPER, now_ms), WEB_AUTH_GOOD);
	web_auth_free(after);
}

static void wrong_password_that_is_sent_again_costs_no_try(void **state)
{
	(void)state;
	struct web_auth *a = auth_of(HASH);
	int64_t now_ms = 1000000;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(web_auth_check(a, wrong_password(7), SCRAPER, now_ms), WEB_AUTH_BAD);
	// A client with an old password therefore does not lock out other clients behind the same address.
	assert_int_equal(web_auth_check(a, "Basic cHJvbWV0aGV1czpzZWNyZXQ=", SCRAPER, now_ms), WEB_AUTH_GOOD);
	web_auth_free(a);
}

static void expensive_hash_is_tried_less_often(void **state)
{
	(void)state;
	static const struct {
		const char *hash;
		int64_t want_ms;
	} cases[] = {{"$2b$04$", WEB_AUTH_TRY_MS},
	             {"$2y$10$", WEB_AUTH_TRY_MS},
	             {"$2a$11$", 2 * WEB_AUTH_TRY_MS},
	             {"$2b$12$", 4 * WEB_AUTH_TRY_MS}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(web_auth_try_ms(cases[i].hash), cases[i].want_ms);
}

static void interval_of_zero_means_no_limit(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t interval_ms;
	} cases[] = {
	        {"rate_limit: {interval: 0}\n", 0},     {"rate_limit: {interval: '0'}\n", 0},
	        {"rate_limit: {interval: 0s}\n", 0},    {"rate_limit: {interval: 0ms, burst: 7}\n", 0},
	        {"rate_limit: {burst: 7}\n", 0},        {"rate_limit:\n", 0},
	        {"rate_limit: {interval: 2s}\n", 2000},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct web_config c;
		struct buf errors;
		struct err e = {.kind = ERR_NONE};
		if (parse(cases[i].text, &c, &errors, &e) < 0)
			fail_msg("%s%s", cases[i].text, buf_str(&errors));
		assert_int_equal(c.rate_interval_ms, cases[i].interval_ms);
		web_config_done(&c);
		buf_done(&errors);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(interval_of_zero_means_no_limit),
	        cmocka_unit_test(whole_file_is_read),
	        cmocka_unit_test(empty_file_changes_nothing),
	        cmocka_unit_test(errors_are_reported_with_their_position),
	        cmocka_unit_test(missing_file_is_reported),
	        cmocka_unit_test(credentials_are_checked),
	        cmocka_unit_test(tries_are_bounded_and_a_known_password_costs_none),
	        cmocka_unit_test(flood_of_addresses_does_not_push_out_a_trusted_one),
	        cmocka_unit_test(flood_from_one_peer_does_not_keep_out_the_scraper),
	        cmocka_unit_test(flood_from_many_peers_delays_a_first_login_by_their_first_tries_at_most),
	        cmocka_unit_test(first_login_is_checked_while_any_number_of_addresses_fail),
	        cmocka_unit_test(peer_that_was_let_in_stays_trusted_when_the_file_changes),
	        cmocka_unit_test(wrong_password_that_is_sent_again_costs_no_try),
	        cmocka_unit_test(expensive_hash_is_tried_less_often),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
