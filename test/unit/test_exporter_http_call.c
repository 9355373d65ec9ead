// SPDX-License-Identifier: Apache-2.0
// The mock's GET, against our own server, with and without TLS.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/http/http_server.h"
#include "exporter/http_call.h"
#include "test/support/certs.h"
#include "test/support/loop.h"

#define LIMIT_MS   60000
#define TIMEOUT_MS 60000 // of what is to be answered
#define HOLD_MS    9000

struct outcome {
	int calls, status;
	char body[256];
	size_t len;
	struct err error;
};

struct fixture {
	struct event_base *loop;
	struct http_server *server;
	struct outcome outcome;
	struct http_exchange *held;
	char url[128];
};

static void on_path(void *arg, struct http_exchange *x)
{
	struct fixture *f = arg;
	const char *path = http_exchange_path(x), *auth = http_exchange_header(x, "Authorization");
	char text[160];
	if (strcmp(path, "/hold") == 0) {
		f->held = x;
	} else if (strcmp(path, "/busy") == 0) {
		http_exchange_reply_text(x, 503, "later\n");
	} else if (strcmp(path, "/big") == 0) {
		size_t len = HTTP_CALL_BODY_BYTES_MAX + 1;
		char *big = malloc(len);
		assert_non_null(big);
		memset(big, 'x', len);
		http_exchange_reply(x, 200, "text/plain", big, len);
		free(big);
	} else {
		snprintf(text, sizeof text, "%s %s?%s auth=%s", http_exchange_method(x), path,
		         http_exchange_query(x, "a") ? http_exchange_query(x, "a") : "", auth ? auth : "-");
		http_exchange_reply_text(x, 200, text);
	}
}

static void serve(struct fixture *f, struct http_server_options o)
{
	struct err e;
	http_server_free(f->server);
	o.loop = f->loop;
	o.listen = "127.0.0.1:0";
	f->server = http_server_new(&o, &e);
	if (!f->server)
		fail_msg("%s", e.msg);
	assert_int_equal(http_server_route(f->server, "/", on_path, f, &e), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	signal(SIGPIPE, SIG_IGN);
	f->loop = event_base_new();
	serve(f, (struct http_server_options){0});
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	http_server_free(f->server);
	event_base_free(f->loop);
	free(f);
	return 0;
}

static void on_done(void *arg, int status, const char *body, size_t len, const struct err *error)
{
	struct outcome *o = arg;
	o->calls++;
	o->status = status;
	o->len = len;
	o->error = error ? *error : (struct err){.kind = ERR_NONE};
	snprintf(o->body, sizeof o->body, "%s", body ? body : "");
}

// One GET to its end. scheme_host: "http://127.0.0.1"; the server's port is put behind it.
static void get(struct fixture *f, const char *scheme_host, const char *path, const char *ca, const char *token)
{
	struct err e;
	f->outcome = (struct outcome){0};
	snprintf(f->url, sizeof f->url, "%s:%u%s", scheme_host, http_server_port(f->server), path);
	int64_t timeout_ms = strcmp(path, "/hold") == 0 ? HOLD_MS : TIMEOUT_MS;
	struct http_call *m = http_call_new(f->loop, f->url, ca, timeout_ms, on_done, &f->outcome, &e);
	if (!m)
		fail_msg("%s", e.msg);
	if (http_call_start(m, token, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(f->outcome.calls, 0); // never from start itself
	assert_true(test_loop_until(f->loop, &f->outcome.calls, 1, LIMIT_MS));
	assert_false(http_call_is_busy(m));
	test_loop_for(f->loop, 20);
	assert_int_equal(f->outcome.calls, 1);
	http_call_free(m);
}

static void reply_is_handed_over_with_its_status(void **state)
{
	struct fixture *f = *state;
	get(f, "http://127.0.0.1", "/x?a=b", NULL, "s3cret");
	assert_int_equal(f->outcome.error.kind, ERR_NONE);
	assert_int_equal(f->outcome.status, 200);
	assert_string_equal(f->outcome.body, "GET /x?b auth=Bearer s3cret\n");
	get(f, "http://127.0.0.1", "/", NULL, NULL);
	assert_string_equal(f->outcome.body, "GET /? auth=-\n");
	get(f, "http://127.0.0.1", "/busy", NULL, NULL);
	assert_int_equal(f->outcome.status, 503);
}

static void name_is_looked_up(void **state)
{
	get(*state, "http://localhost", "/", NULL, NULL);
	assert_int_equal(((struct fixture *)*state)->outcome.status, 200);
}

static void client_can_be_used_again(void **state)
{
	struct fixture *f = *state;
	struct err e;
	snprintf(f->url, sizeof f->url, "http://127.0.0.1:%u/", http_server_port(f->server));
	struct http_call *m = http_call_new(f->loop, f->url, NULL, TIMEOUT_MS, on_done, &f->outcome, &e);
	assert_non_null(m);
	for (int i = 1; i <= 5; i++) {
		assert_int_equal(http_call_start(m, NULL, &e), 0);
		assert_int_equal(http_call_start(m, NULL, &e), -1); // one at a time
		assert_true(test_loop_until(f->loop, &f->outcome.calls, i, LIMIT_MS));
		assert_int_equal(f->outcome.status, 200);
	}
	assert_int_equal(http_call_start(m, NULL, &e), 0);
	http_call_free(m); // in flight
	test_loop_for(f->loop, 50);
	assert_int_equal(f->outcome.calls, 5);
}

static void every_fault_has_its_kind(void **state)
{
	struct fixture *f = *state;
	get(f, "http://127.0.0.1", "/hold", NULL, NULL);
	assert_int_equal(f->outcome.error.kind, ERR_TIMEOUT);
	assert_non_null(strstr(f->outcome.error.msg, "no reply within 9.000 s"));
	get(f, "http://127.0.0.1", "/big", NULL, NULL);
	assert_int_equal(f->outcome.error.kind, ERR_LIMIT);

	static const char *const silent[] = {"http://127.0.0.1:1/", "https://127.0.0.1:1/"};
	for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
		struct err e;
		struct http_call *m = http_call_new(f->loop, silent[i], NULL, TIMEOUT_MS, on_done, &f->outcome, &e);
		f->outcome.calls = 0;
		if (http_call_start(m, NULL, &e) == 0) {
			assert_true(test_loop_until(f->loop, &f->outcome.calls, 1, LIMIT_MS));
			e = f->outcome.error;
		}
		assert_int_equal(e.kind, ERR_UNREACHABLE);
		assert_string_equal(e.msg, "cannot reach 127.0.0.1:1: no connection; is the server running and "
		                           "listening at this address?");
		http_call_free(m);
	}
}

static void unusable_url_or_token_is_refused(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *url, *ca, *in_message;
	} cases[] = {
	        {"ftp://127.0.0.1/", NULL, "not an http or https URL"},
	        {"127.0.0.1", NULL, "not an http or https URL"},
	        {"http:///x", NULL, "not an http or https URL"},
	        {"http://u:p@127.0.0.1/", NULL, "credentials"},
	        {"https://127.0.0.1/", "/nonexistent.pem", "cannot read certificates from /nonexistent.pem"},
	};
	struct err e;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_null(http_call_new(f->loop, cases[i].url, cases[i].ca, 1000, on_done, &f->outcome, &e));
		if (!strstr(e.msg, cases[i].in_message))
			fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].url, e.msg, cases[i].in_message);
	}
	struct http_call *m = http_call_new(f->loop, "http://127.0.0.1:1/", NULL, 1000, on_done, &f->outcome, &e);
	assert_int_equal(http_call_start(m, "two\r\nlines", &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	http_call_free(m);
}

static void tls_is_verified(void **state)
{
	struct fixture *f = *state;
	struct certs c;
	if (certs_init(&c) < 0) {
		certs_done(&c);
		fail_msg("cannot make certificates");
	}
	static const struct {
		enum certs_file cert, key, ca;
		const char *host;
		enum err_kind want;
	} cases[] = {
	        {CERTS_SERVER, CERTS_SERVER_KEY, CERTS_CA, "https://127.0.0.1", ERR_NONE},
	        {CERTS_SERVER, CERTS_SERVER_KEY, CERTS_CA, "https://localhost", ERR_NONE},
	        {CERTS_SERVER, CERTS_SERVER_KEY, CERTS_OTHER_CA, "https://127.0.0.1", ERR_TLS},
	        {CERTS_EXPIRED, CERTS_EXPIRED_KEY, CERTS_CA, "https://127.0.0.1", ERR_TLS},
	        {CERTS_OTHER_NAME, CERTS_OTHER_NAME_KEY, CERTS_CA, "https://127.0.0.1", ERR_TLS},
	        {CERTS_OTHER_NAME, CERTS_OTHER_NAME_KEY, CERTS_CA, "https://localhost", ERR_TLS},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		serve(f, (struct http_server_options){.tls_cert_file = c.path[cases[i].cert],
		                                      .tls_key_file = c.path[cases[i].key]});
		get(f, cases[i].host, "/", c.path[cases[i].ca], NULL);
		if (f->outcome.error.kind != cases[i].want)
			fail_msg("case %zu: %s \"%s\"", i, err_kind_info(f->outcome.error.kind)->name,
			         f->outcome.error.msg);
		assert_int_equal(f->outcome.status, cases[i].want == ERR_NONE ? 200 : 0);
	}
	certs_done(&c);
}

struct stream {
	struct outcome outcome; // first: on_done() takes it for its own
	size_t bytes, most;
};

static int on_data(void *arg, const char *data, size_t len, struct err *e)
{
	struct stream *s = arg;
	assert_true(len > 0 && data[len - 1] == 'x');
	s->bytes += len;
	return s->bytes > s->most ? err_set(e, ERR_REJECTED, "enough") : 0;
}

static void stream(struct fixture *f, const char *path, size_t bytes_max, size_t most, struct stream *s)
{
	struct err e;
	*s = (struct stream){.most = most};
	snprintf(f->url, sizeof f->url, "http://127.0.0.1:%u%s", http_server_port(f->server), path);
	struct http_call *m = http_call_new(f->loop, f->url, NULL, TIMEOUT_MS, on_done, s, &e);
	assert_non_null(m);
	http_call_stream(m, "text/plain", bytes_max, on_data);
	assert_int_equal(http_call_start(m, NULL, &e), 0);
	assert_true(test_loop_until(f->loop, &s->outcome.calls, 1, LIMIT_MS));
	test_loop_for(f->loop, 20);
	assert_int_equal(s->outcome.calls, 1);
	http_call_free(m);
}

static void body_is_passed_on_as_it_arrives(void **state)
{
	struct fixture *f = *state;
	struct stream s;
	const size_t big = HTTP_CALL_BODY_BYTES_MAX + 1;
	stream(f, "/big", big, big, &s);
	assert_int_equal(s.outcome.error.kind, ERR_NONE);
	assert_true(s.outcome.status == 200 && s.outcome.len == 0 && s.bytes == big);
	stream(f, "/big", big - 1, big, &s);
	assert_int_equal(s.outcome.error.kind, ERR_LIMIT);
	stream(f, "/big", big, 1000, &s);
	assert_int_equal(s.outcome.error.kind, ERR_REJECTED);
	assert_string_equal(s.outcome.error.msg, "enough");
	assert_true(s.bytes < big);
	stream(f, "/busy", big, big, &s);
	assert_true(s.outcome.status == 503 && s.bytes == 0);
	assert_string_equal(s.outcome.body, "later\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(reply_is_handed_over_with_its_status),
	        TEST(name_is_looked_up),
	        TEST(client_can_be_used_again),
	        TEST(every_fault_has_its_kind),
	        TEST(unusable_url_or_token_is_refused),
	        TEST(tls_is_verified),
	        TEST(body_is_passed_on_as_it_arrives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
