// SPDX-License-Identifier: Apache-2.0
#include "test/support/http_fixture.h"
#include "test/support/http_request.h"

#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void handle_echo(void *arg, struct http_exchange *x)
{
	struct http_fixture *f = arg;
	size_t len;
	const char *body = http_exchange_body(x, &len), *status = http_exchange_query(x, "status");
	f->handled++;
	http_exchange_set_header(x, "X-Method", http_exchange_method(x));
	http_exchange_set_header(x, "Location", "/echo?redirected=yes");
	http_exchange_reply(x, status ? (status[0] - '0') * 100 + (status[1] - '0') * 10 + (status[2] - '0') : 200,
	                    "application/x-echo", body, len);
}

static void handle_headers(void *arg, struct http_exchange *x)
{
	char text[1024];
	const char *auth = http_exchange_header(x, "Authorization"), *type = http_exchange_header(x, "Content-Type");
	const char *agent = http_exchange_header(x, "User-Agent"), *host = http_exchange_header(x, "Host");
	snprintf(text, sizeof text, "auth=%s type=%s agent=%s host=%s", auth ? auth : "none", type ? type : "none",
	         agent ? agent : "none", host ? host : "none");
	http_exchange_reply_text(x, 200, text);
}

static void handle_hold(void *arg, struct http_exchange *x)
{
	struct http_fixture *f = arg;
	f->handled++;
	assert_true(f->n_held < (int)COUNT(f->held));
	f->held[f->n_held++] = x;
}

static void handle_big(void *arg, struct http_exchange *x)
{
	const char *n = http_exchange_query(x, "bytes");
	size_t len = 0;
	for (; n && *n; n++)
		len = len * 10 + (size_t)(*n - '0');
	char *body = malloc(len + 1);
	assert_non_null(body);
	memset(body, 'x', len);
	http_exchange_reply(x, 200, "text/plain", body, len);
	free(body);
}

void http_fixture_serve(struct http_fixture *f, struct http_server_options options)
{
	struct err e;
	f->n_held = 0;
	http_server_free(f->server);
	options.loop = f->loop;
	options.listen = options.listen ? options.listen : "127.0.0.1:0";
	if (!options.head_ms)
		options.head_ms = TEST_PATIENCE_MS;
	if (!options.max_peer_connections)
		options.max_peer_connections = HTTP_SERVER_CONNECTIONS_MAX; // every client has one address
	f->server = http_server_new(&options, &e);
	if (!f->server)
		fail_msg("%s", e.msg);
	assert_int_equal(http_server_route(f->server, "/echo", handle_echo, f, &e), 0);
	assert_int_equal(http_server_route(f->server, "/headers", handle_headers, f, &e), 0);
	assert_int_equal(http_server_route(f->server, "/hold", handle_hold, f, &e), 0);
	assert_int_equal(http_server_route(f->server, "/big", handle_big, f, &e), 0);
}

int http_fixture_setup(void **state)
{
	struct http_fixture *f = calloc(1, sizeof *f);
	struct err e;
	signal(SIGPIPE, SIG_IGN); // as every program does
	assert_non_null(f);
	f->loop = event_base_new();
	f->client = http_client_new(
	        &(struct http_client_options){.loop = f->loop, .connect_timeout_ms = TEST_PATIENCE_MS}, &e);
	assert_non_null(f->client);
	http_fixture_serve(f, (struct http_server_options){0});
	*state = f;
	return 0;
}

int http_fixture_teardown(void **state)
{
	struct http_fixture *f = *state;
	http_client_free(f->client);
	http_server_free(f->server);
	raw_server_free(f->raw);
	event_base_free(f->loop);
	http_result_done(&f->result);
	for (size_t i = 0; i < f->n_results; i++)
		http_result_done(&f->results[i]);
	free(f->results);
	free(f->reply);
	free(f);
	return 0;
}

void http_fixture_play(struct http_fixture *f, const struct raw_step *steps, size_t n)
{
	raw_server_free(f->raw);
	f->raw = raw_server_new(f->loop, steps, n);
	assert_non_null(f->raw);
}

const char *http_fixture_url(struct http_fixture *f, const char *path)
{
	int port = f->raw ? raw_server_port(f->raw) : http_server_port(f->server);
	snprintf(f->url, sizeof f->url, "http://127.0.0.1:%d%s", port, path);
	return f->url;
}

void http_fixture_fetch(struct http_fixture *f, const struct http_request *r)
{
	if (http_result_of(f->client, f->loop, r, &f->result, FIXTURE_LIMIT_MS) != 1)
		fail_msg("%s %s: %d callbacks: %s", r->method, r->url, f->result.done, f->result.error.msg);
}

void http_fixture_get(struct http_fixture *f, const char *path)
{
	http_fixture_fetch(f, &(struct http_request){.method = "GET", .url = http_fixture_url(f, path)});
}

struct http_result *http_fixture_results(struct http_fixture *f, size_t n)
{
	assert_null(f->results);
	f->results = calloc(n, sizeof *f->results);
	assert_non_null(f->results);
	f->n_results = n;
	return f->results;
}

void http_fixture_release(struct http_fixture *f)
{
	while (f->n_held > 0)
		http_exchange_reply_text(f->held[--f->n_held], 200, "released");
}

void http_fixture_assert_error(const struct http_fixture *f, enum err_kind kind, const char *part)
{
	const struct err *e = &f->result.error;
	if (e->kind != kind || !strstr(e->msg, part))
		fail_msg("wanted %s with \"%s\", got %s: status %d, \"%s\"", err_kind_info(kind)->name, part,
		         err_kind_info(e->kind)->name, f->result.status, e->msg);
}

struct raw_client *http_fixture_dial(struct http_fixture *f)
{
	struct raw_client *c = raw_client_new(f->loop, http_server_port(f->server));
	assert_non_null(c);
	return c;
}

const char *http_fixture_exchange(struct http_fixture *f, const char *request)
{
	struct raw_client *c = http_fixture_dial(f);
	raw_client_send(c, request, 0);
	raw_client_shutdown(c);
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	free(f->reply);
	f->reply = strdup(raw_client_text(c));
	assert_non_null(f->reply);
	raw_client_free(c);
	return f->reply;
}

void http_fixture_assert_starts(const char *text, const char *start)
{
	if (strncmp(text, start, strlen(start)) != 0)
		fail_msg("wanted \"%s\" at the start of \"%.200s\"", start, text);
}
