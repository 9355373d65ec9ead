// SPDX-License-Identifier: Apache-2.0
// A Prometheus target with one series per benchmark policy: bench_load{target="d0000"} and so on, all of one value that
// GET /set?value=V changes at once. Prints "listening on URL", ends on SIGTERM.
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_server.h"
#include "base/num.h"

#define SERIES_MAX     20000
#define PAGE_BYTES_MAX (1024 * 1024)

struct source {
	int64_t n_series;
	double value;
};

static void on_metrics(void *arg, struct http_exchange *x)
{
	const struct source *s = arg;
	struct buf page;
	char value[NUM_TEXT_BYTES];
	num_format_f64(value, s->value);
	buf_init(&page, PAGE_BYTES_MAX);
	buf_puts(&page, "# HELP bench_load Load of a benchmark target.\n# TYPE bench_load gauge\n");
	for (int64_t i = 0; i < s->n_series; i++)
		buf_printf(&page, "bench_load{target=\"d%04d\"} %s\n", (int)i, value);
	if (page.failed)
		http_exchange_reply_text(x, 500, "too many series\n");
	else
		http_exchange_reply(x, 200, "text/plain; version=0.0.4", page.data, page.len);
	buf_done(&page);
}

static void on_set(void *arg, struct http_exchange *x)
{
	struct source *s = arg;
	const char *text = http_exchange_query(x, "value");
	struct err e;
	double value;
	if (!text || num_parse_f64(text, strlen(text), &value, &e) < 0) {
		http_exchange_reply_text(x, 400, "value=NUMBER\n");
		return;
	}
	s->value = value;
	http_exchange_reply_text(x, 200, "ok\n");
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	event_base_loopbreak(arg);
}

int main(int argc, char **argv)
{
	struct source source = {.value = 1};
	struct err e;
	if (argc != 2 || num_parse_i64(argv[1], strlen(argv[1]), 1, SERIES_MAX, &source.n_series, &e) < 0) {
		fputs("usage: bench_source SERIES\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	struct event_base *loop = event_base_new();
	struct event *term = loop ? evsignal_new(loop, SIGTERM, on_signal, loop) : NULL;
	if (!term || event_add(term, NULL) < 0) {
		fputs("bench_source: cannot create an event loop\n", stderr);
		return 1;
	}
	struct http_server_options options = {.loop = loop, .listen = "127.0.0.1:0"};
	struct http_server *server = http_server_new(&options, &e);
	if (!server || http_server_route(server, "/metrics", on_metrics, &source, &e) < 0 ||
	    http_server_route(server, "/set", on_set, &source, &e) < 0) {
		fprintf(stderr, "bench_source: %s\n", e.msg);
		return 1;
	}
	printf("listening on http://127.0.0.1:%u\n", (unsigned)http_server_port(server));
	fflush(stdout);
	event_base_dispatch(loop);
	http_server_free(server);
	event_free(term);
	event_base_free(loop);
	libevent_global_shutdown();
	return 0;
}
