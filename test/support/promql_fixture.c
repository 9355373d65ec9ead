// SPDX-License-Identifier: Apache-2.0
#include "test/support/promql_fixture.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/http/http_server.h"
#include "test/support/http_request.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/promql_short.h"

#define WAIT_MS 60000

static void copy(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text ? text : "");
}

static void send_reply(struct http_exchange *x, const struct promql_reply *r)
{
	if (r->retry_after)
		http_exchange_set_header(x, "Retry-After", r->retry_after);
	http_exchange_reply(x, r->status, r->type ? r->type : "application/json", r->body, strlen(r->body));
}

static void on_held(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct promql_held *h = arg;
	send_reply(h->x, &h->reply);
	h->x = NULL;
}

static void on_request(void *arg, struct http_exchange *x)
{
	struct promql_fixture *f = arg;
	assert_true(f->n_requests < PROMQL_FIXTURE_REQUESTS_MAX);
	struct promql_request *q = &f->requests[f->n_requests];
	const struct promql_reply *r = &f->replies[f->n_requests < f->n_replies ? f->n_requests : f->n_replies - 1];
	const char *rotation = f->n_requests < PROMQL_FIXTURE_REPLIES_MAX ? f->rotations[f->n_requests] : NULL;
	if (rotation)
		promql_fixture_write(f, rotation);
	f->n_requests++;
	copy(q->method, sizeof q->method, http_exchange_method(x));
	copy(q->path, sizeof q->path, http_exchange_path(x));
	copy(q->type, sizeof q->type, http_exchange_header(x, "Content-Type"));
	copy(q->authorization, sizeof q->authorization, http_exchange_header(x, "Authorization"));
	copy(q->extra, sizeof q->extra, http_exchange_header(x, "X-Scope-OrgID"));
	copy(q->body, sizeof q->body, http_exchange_body(x, NULL));
	if (!r->delay_ms) {
		send_reply(x, r);
		return;
	}
	assert_null(f->held.x);
	f->held.x = x;
	f->held.reply = *r;
	struct timeval wait = {.tv_sec = r->delay_ms / 1000, .tv_usec = r->delay_ms % 1000 * 1000};
	event_add(f->held.timer, &wait);
}

void promql_fixture_done(void *arg, const struct promql_result *result, const struct err *error)
{
	struct promql_fixture *f = arg;
	assert_true((result != NULL) != (error != NULL));
	err_clear(&f->e);
	f->n_series = f->n_warnings = 0;
	if (error) {
		f->e = *error;
	} else {
		f->n_series = result->n_series;
		f->n_warnings = result->n_warnings;
		if (result->n_series)
			f->value = result->series[0].samples[0].value;
	}
	f->n_done++;
}

void promql_fixture_serve(struct promql_fixture *f, struct http_server_options o)
{
	struct err e = {0};
	http_server_free(f->server);
	o.loop = f->loop;
	o.listen = "127.0.0.1:0";
	f->server = http_server_new(&o, &e);
	if (!f->server || http_server_route(f->server, "/prefix/api/v1/", on_request, f, &e) < 0 ||
	    http_server_route(f->server, "/api/v1/", on_request, f, &e) < 0)
		fail_msg("%s", e.msg);
	snprintf(f->url, sizeof f->url, "%s://127.0.0.1:%u", o.tls_cert_file ? "https" : "http",
	         http_server_port(f->server));
}

int promql_fixture_setup(void **state)
{
	struct promql_fixture *f = calloc(1, sizeof *f);
	struct err e = {0};
	if (!f)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	f->loop = event_base_new();
	f->http = http_client_new(
	        &(struct http_client_options){.loop = f->loop, .connect_timeout_ms = TEST_PATIENCE_MS}, &e);
	if (!f->http) {
		print_error("%s\n", e.msg);
		event_base_free(f->loop);
		free(f);
		return -1;
	}
	promql_fixture_serve(f, (struct http_server_options){0});
	f->held.timer = event_new(f->loop, -1, 0, on_held, &f->held);
	clock_init_manual(&f->clock, 1700000000000);
	snprintf(f->file, sizeof f->file, "/tmp/test_promql-%ld", (long)getpid());
	f->replies[0] = (struct promql_reply){.status = 200, .body = PROMQL_FIXTURE_BODY};
	f->n_replies = 1;
	*state = f;
	return 0;
}

int promql_fixture_teardown(void **state)
{
	struct promql_fixture *f = *state;
	if (f->held.x)
		on_held(-1, 0, &f->held);
	event_free(f->held.timer);
	http_client_free(f->http);
	http_server_free(f->server);
	event_base_free(f->loop);
	unlink(f->file);
	free(f);
	return 0;
}

void promql_fixture_write(const struct promql_fixture *f, const char *text)
{
	FILE *file = fopen(f->file, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

struct promql *promql_fixture_open(struct promql_fixture *f, struct promql_options o)
{
	struct err e = {0};
	o.http = f->http;
	if (!o.url)
		o.url = f->url;
	o.clock = &f->clock;
	struct promql *p = promql_new(&o, &e);
	if (!p)
		fail_msg("promql_new: %s", e.msg);
	return p;
}

void promql_fixture_wait(struct promql_fixture *f, int n)
{
	assert_true(test_loop_until(f->loop, &f->n_done, n, WAIT_MS));
	assert_int_equal(f->n_done, n);
}

void promql_fixture_ask(struct promql_fixture *f, struct promql *p)
{
	struct err e = {0};
	f->n_done = 0;
	if (promql_query(p, "up", 0, promql_fixture_done, f, &e) < 0)
		fail_msg("promql_query: %s", e.msg);
	promql_fixture_wait(f, 1);
}

void promql_fixture_expect_ok(const struct promql_fixture *f)
{
	if (f->e.kind != ERR_NONE)
		fail_msg("unexpected error: %s", f->e.msg);
	assert_int_equal(f->n_series, 1);
	assert_true(f->value == 0.7);
}
