// SPDX-License-Identifier: Apache-2.0
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process/log.h"
#include "runtime/options/flag_table.h"
#include "runtime/options/serve_options.h"
#include "test/support/certs.h"
#include "test/support/http_fixture.h"
#include "test/support/tree.h"

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

// Replaces the file as careful writers do.
static void put(const char *dir, const char *name, const char *text)
{
	char path[256], fresh[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	snprintf(fresh, sizeof fresh, "%s/%s.new", dir, name);
	FILE *f = fopen(fresh, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(fresh, path), 0);
}

static int fetch(struct http_fixture *f, const char *path, const char *header)
{
	const char *const headers[] = {header, NULL};
	http_fixture_fetch(
	        f, &(struct http_request){.method = "GET", .url = http_fixture_url(f, path), .headers = headers});
	return f->result.status;
}

static void probes_are_open_and_the_rest_asks_for_the_token(void **state)
{
	struct http_fixture *f = *state;
	static const struct {
		const char *path, *header;
		int status;
	} rows[] = {
	        {"/livez", NULL, 404}, // admitted: the fixture has no such page
	        {"/readyz", NULL, 404},
	        {"/healthz", NULL, 404},
	        {"/", NULL, 404}, // the page holds no data
	        {"//", NULL, 401},
	        {"/livez/", NULL, 401},
	        {"/echo", NULL, 401},
	        {"/nowhere", NULL, 401},
	        {"/echo", "Authorization: Bearer s3cret", 200},
	        {"/echo", "Authorization: bearer  s3cret", 200},
	        {"/echo", "Authorization: Bearer s3cre", 401},
	        {"/echo", "Authorization: Bearer s3cret2", 401},
	        {"/echo", "Authorization: Bearer ", 401},
	        {"/echo", "Authorization: Basic s3cret", 401},
	        {"/echo", "Authorization: s3cret", 401},
	        {"/echo", "Authorization: Bearer S3CRET", 401},
	};
	struct tree tree;
	tree_make(&tree);
	struct err e;
	char path[256];
	put(tree.root, "token", "s3cret\n");
	snprintf(path, sizeof path, "%s/token", tree.root);
	struct endpoint_token *token = endpoint_token_new(path, NULL, &e);
	assert_non_null(token);
	http_server_set_admission(f->server, endpoint_token_admit, token);
	for (size_t i = 0; i < COUNT(rows); i++)
		if (fetch(f, rows[i].path, rows[i].header) != rows[i].status)
			fail_msg("row %zu: %d", i, f->result.status);
	const char *reply = http_fixture_exchange(f, "GET /echo HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
	assert_non_null(strstr(reply, "\r\nWWW-Authenticate: Bearer realm=\"gpuscale\"\r\n"));

	put(tree.root, "token", "another");
	assert_int_equal(fetch(f, "/echo", "Authorization: Bearer s3cret"), 401);
	assert_int_equal(fetch(f, "/echo", "Authorization: Bearer another"), 200);
	// An invalid token leaves the last one in force.
	put(tree.root, "token", "\n");
	assert_int_equal(fetch(f, "/echo", "Authorization: Bearer "), 401);
	assert_int_equal(fetch(f, "/echo", "Authorization: Bearer another"), 200);
	unlink(path);
	assert_int_equal(fetch(f, "/echo", NULL), 401);
	assert_int_equal(fetch(f, "/echo", "Authorization: Bearer another"), 200);
	http_server_set_admission(f->server, NULL, NULL);
	endpoint_token_free(token);
	tree_remove(&tree);
}

static void file_without_a_token_does_not_start(void **state)
{
	static const char *const bad[] = {"", " \n", "two words", "line\nline", "\xc3\xa9", "nul\x01"};
	struct tree tree;
	tree_make(&tree);
	char path[256];
	struct err e;
	snprintf(path, sizeof path, "%s/token", tree.root);
	assert_null(endpoint_token_new(path, NULL, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	for (size_t i = 0; i < COUNT(bad); i++) {
		put(tree.root, "token", bad[i]);
		assert_null(endpoint_token_new(path, NULL, &e));
		assert_int_equal(e.kind, ERR_INPUT);
	}
	char *longer = malloc(ENDPOINT_TOKEN_BYTES_MAX + 2);
	assert_non_null(longer);
	memset(longer, 'x', ENDPOINT_TOKEN_BYTES_MAX + 1);
	longer[ENDPOINT_TOKEN_BYTES_MAX + 1] = '\0';
	put(tree.root, "token", longer);
	assert_null(endpoint_token_new(path, NULL, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	free(longer);
	tree_remove(&tree);
}

// ---- certificates that change ----

static bool serves(struct http_fixture *f, const char *name)
{
	char url[64];
	struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA], .server_name = name};
	snprintf(url, sizeof url, "https://127.0.0.1:%d/echo", http_server_port(f->server));
	http_fixture_fetch(f, &(struct http_request){.method = "GET", .url = url, .tls = &tls});
	return f->result.status == 200;
}

static bool comes_to_serve(struct http_fixture *f, const char *name)
{
	int64_t end = test_now_ms() + FIXTURE_LIMIT_MS;
	while (!serves(f, name)) {
		if (test_now_ms() > end)
			return false;
		test_loop_for(f->loop, 20);
	}
	return true;
}

// Returns how many lines of the log contain `text`.
static int count_lines(const char *path, const char *text)
{
	char line[1024];
	int n = 0;
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

static void certificate_replaced_by_a_valid_pair_is_served(void **state)
{
	struct http_fixture *f = *state;
	struct tree tree;
	tree_make(&tree);
	char cert[256], key[256], log_path[256];
	snprintf(log_path, sizeof log_path, "%s/log", tree.root);
	int log_fd = open(log_path, O_CREAT | O_WRONLY | O_APPEND, 0600);
	assert_true(log_fd >= 0);
	struct clock clock;
	clock_init_real(&clock);
	struct log *log = log_new(log_fd, LOG_FORMAT_TEXT, LOG_INFO, &clock);
	assert_non_null(log);
	snprintf(cert, sizeof cert, "%s/tls.crt", tree.root);
	snprintf(key, sizeof key, "%s/tls.key", tree.root);
	put(tree.root, "tls.crt", certs.pem[CERTS_SERVER]);
	put(tree.root, "tls.key", certs.pem[CERTS_SERVER_KEY]);
	struct http_server_options o = {.tls_cert_file = cert, .tls_key_file = key};
	http_fixture_serve(f, o);
	struct tls_follower *follower = tls_follower_new(f->loop, f->server, &o, "test", log);
	assert_non_null(follower);
	assert_true(serves(f, "localhost"));

	put(tree.root, "tls.crt", certs.pem[CERTS_OTHER_NAME]); // the key is still the old one
	test_loop_for(f->loop, 2 * TLS_FOLLOWER_MS + 200);
	assert_true(serves(f, "localhost"));
	assert_int_equal(count_lines(log_path, "Cannot use changed certificate"), 1); // not at every check
	assert_int_equal(count_lines(log_path, "Reloaded certificate"), 0);

	put(tree.root, "tls.key", certs.pem[CERTS_OTHER_NAME_KEY]);
	assert_true(comes_to_serve(f, "other.gpuscale.test"));
	assert_int_equal(count_lines(log_path, "Reloaded certificate"), 1);

	unlink(cert);
	test_loop_for(f->loop, TLS_FOLLOWER_MS + 200);
	assert_true(serves(f, "other.gpuscale.test"));
	put(tree.root, "tls.crt", certs.pem[CERTS_SERVER]);
	put(tree.root, "tls.key", certs.pem[CERTS_SERVER_KEY]);
	assert_true(comes_to_serve(f, "localhost"));
	tls_follower_free(follower);
	log_free(log);
	close(log_fd);
	tree_remove(&tree);
}

// ---- flags ----

static void flags_become_options(void **state)
{
	static const struct {
		const char *argv[8];
		struct serve_options want;
	} rows[] = {
	        {{"x"}, {.tls_min_minor = 2}},
	        {{"x", "--external-metrics"}, {.tls_min_minor = 2, .external_metrics = EXTERNAL_METRICS_LISTEN}},
	        {{"x", "--external-metrics=127.0.0.1:1", "--tls-min-version=1.3"},
	         {.tls_min_minor = 3, .external_metrics = "127.0.0.1:1"}},
	        {{"x", "--tls-min-version=VersionTLS13"}, {.tls_min_minor = 3}},
	        {{"x", "--tls-min-version=VersionTLS12"}, {.tls_min_minor = 2}},
	        {{"x", "--tls-cert-file=c", "--tls-key-file=k", "--endpoint-token-file=t"},
	         {.tls_min_minor = 2, .tls_cert_file = "c", .tls_key_file = "k", .token_file = "t"}},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct serve_options o;
		int argc = 0;
		char *argv[9] = {0};
		for (; rows[i].argv[argc]; argc++)
			argv[argc] = strdup(rows[i].argv[argc]);
		serve_options_init(&o);
		struct flag_parser p;
		flag_parser_init(&p, &serve_flags, NULL, &o);
		flag_parser_run(&p, argc, argv);
		const char *const got[] = {o.external_metrics, o.tls_cert_file, o.tls_key_file, o.token_file};
		const struct serve_options *w = &rows[i].want;
		const char *const want[] = {w->external_metrics, w->tls_cert_file, w->tls_key_file, w->token_file};
		for (size_t k = 0; k < COUNT(got); k++)
			assert_string_equal(got[k] ? got[k] : "(none)", want[k] ? want[k] : "(none)");
		assert_int_equal(o.tls_min_minor, w->tls_min_minor);
		for (int k = 0; k < argc; k++)
			free(argv[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(probes_are_open_and_the_rest_asks_for_the_token, http_fixture_setup,
	                                        http_fixture_teardown),
	        cmocka_unit_test(file_without_a_token_does_not_start),
	        cmocka_unit_test_setup_teardown(certificate_replaced_by_a_valid_pair_is_served, http_fixture_setup,
	                                        http_fixture_teardown),
	        cmocka_unit_test(flags_become_options),
	};
	return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
