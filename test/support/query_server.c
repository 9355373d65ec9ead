// SPDX-License-Identifier: Apache-2.0
#include "test/support/query_server.h"
#include "test/support/manual_clock.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/http/http_text.h"
#include "promql/promql_source.h"
#include "promql/similar.h"
#include "runtime/query/query_hub.h"

#define FORM_BYTES_MAX (64 * 1024)

struct conn {
	LIST_ENTRY(conn) link;
	struct query_server *server;
	struct bufferevent *bev;
	struct event *timer;
	enum query_fault fault; // of the request in progress
	bool is_busy;
	char marks[FUSE_MAX][8]; // of its queries; the first is "" for a query alone
	size_t n;
};

struct query_server {
	struct event_base *loop;
	struct evconnlistener *listener;
	query_server_fn *fn;
	void *arg;
	char url[64];
	int n_requests;
	LIST_HEAD(conn_list, conn) conns;
};

const char *const query_fault_names[] = {
        [QUERY_ANSWERED] = "answered",
        [QUERY_400] = "400",
        [QUERY_422] = "422",
        [QUERY_403] = "403",
        [QUERY_404] = "404",
        [QUERY_429] = "429",
        [QUERY_429_RETRY] = "429 with Retry-After",
        [QUERY_500] = "500",
        [QUERY_502] = "502",
        [QUERY_503] = "503",
        [QUERY_503_RETRY] = "503 with Retry-After",
        [QUERY_504] = "504",
        [QUERY_ERROR_200] = "200 with an error",
        [QUERY_WARNS] = "a warning",
        [QUERY_WRONG_TYPE] = "a wrong type",
        [QUERY_MALFORMED] = "malformed",
        [QUERY_HTML] = "HTML",
        [QUERY_OVERSIZED] = "oversized",
        [QUERY_TRUNCATED] = "truncated",
        [QUERY_RESET] = "reset",
        [QUERY_HANGS] = "hangs",
};
_Static_assert(sizeof query_fault_names / sizeof query_fault_names[0] == QUERY_FAULT__COUNT, "one name per fault");

static const struct {
	int status;
	const char *head, *body;
} replies[QUERY_FAULT__COUNT] = {
        [QUERY_400] = {400, "", "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}"},
        [QUERY_422] = {422, "", "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"too many samples\"}"},
        [QUERY_403] = {403, "Content-Type: text/plain\r\n", "forbidden"},
        [QUERY_404] = {404, "Content-Type: text/plain\r\n", "404 page not found"},
        [QUERY_429] = {429, "Content-Type: text/plain\r\n", "too many requests"},
        [QUERY_429_RETRY] = {429, "Content-Type: text/plain\r\nRetry-After: 3600\r\n", "too many requests"},
        [QUERY_500] = {500, "", "{\"status\":\"error\",\"errorType\":\"internal\",\"error\":\"a panic\"}"},
        [QUERY_502] = {502, "Content-Type: text/plain\r\n", "bad gateway"},
        [QUERY_503] = {503, "Content-Type: text/plain\r\n", "overloaded"},
        [QUERY_503_RETRY] = {503, "Content-Type: text/plain\r\nRetry-After: 3600\r\n", "overloaded"},
        [QUERY_504] = {504, "Content-Type: text/plain\r\n", "gateway timeout"},
        [QUERY_ERROR_200] = {200, "", "{\"status\":\"error\",\"errorType\":\"internal\",\"error\":\"a panic\"}"},
        [QUERY_WARNS] = {200, "",
                         "{\"status\":\"success\",\"warnings\":[\"one store is away\"],\"data\":{\"resultType\":"
                         "\"vector\",\"result\":[]}}"},
        [QUERY_WRONG_TYPE] = {200, "", "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}"},
        [QUERY_MALFORMED] = {200, "", "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{]}}"},
        [QUERY_HTML] = {200, "Content-Type: text/html\r\n", "<html>sign in</html>"},
};

static void conn_free(struct conn *c)
{
	LIST_REMOVE(c, link);
	event_free(c->timer);
	bufferevent_free(c->bev);
	free(c);
}

static void conn_reset(struct conn *c)
{
	struct linger hard = {.l_onoff = 1};
	setsockopt(bufferevent_getfd(c->bev), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	conn_free(c);
}

static void send_body(struct conn *c, int status, const char *head, const char *body, size_t len)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	evbuffer_add_printf(out, "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n", status, head, len);
	evbuffer_add(out, body, len);
}

static void send_answer(struct conn *c)
{
	char body[FUSE_MAX * 96 + 128];
	int n = snprintf(body, sizeof body, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
	for (size_t i = 0; i < c->n; i++) {
		bool is_marked = c->marks[i][0] != '\0';
		n += snprintf(body + n, sizeof body - (size_t)n, "%s{\"metric\":{%s%s%s},\"value\":[2,\"7\"]}",
		              i ? "," : "", is_marked ? "\"" FUSE_LABEL "\":\"" : "", c->marks[i],
		              is_marked ? "\"" : "");
	}
	n += snprintf(body + n, sizeof body - (size_t)n, "]}}");
	send_body(c, 200, "", body, (size_t)n);
}

static void take_request(struct conn *c);

// May free the connection.
static void reply(struct conn *c)
{
	char *filler;
	c->is_busy = false;
	switch (c->fault) {
	case QUERY_ANSWERED:
		send_answer(c);
		break;
	case QUERY_OVERSIZED:
		filler = malloc(2 * QUERY_SERVER_BODY_MAX);
		if (!filler)
			abort();
		memset(filler, ' ', 2 * QUERY_SERVER_BODY_MAX);
		send_body(c, 200, "", filler, 2 * QUERY_SERVER_BODY_MAX);
		free(filler);
		break;
	case QUERY_TRUNCATED:
		evbuffer_add_printf(bufferevent_get_output(c->bev),
		                    "HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\n{\"status\":");
		bufferevent_flush(c->bev, EV_WRITE, BEV_FINISHED);
		evbuffer_write(bufferevent_get_output(c->bev), bufferevent_getfd(c->bev));
		conn_free(c);
		return;
	case QUERY_RESET:
		conn_reset(c);
		return;
	case QUERY_HANGS:
		c->is_busy = true; // permanently
		return;
	default:
		send_body(c, replies[c->fault].status, replies[c->fault].head, replies[c->fault].body,
		          strlen(replies[c->fault].body));
	}
	take_request(c);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	reply(arg);
}

static void look_up(struct conn *c, const char *query, size_t n_together, int *delay_ms)
{
	struct query_reply r = c->server->fn(c->server->arg, query, n_together);
	if (c->fault == QUERY_ANSWERED)
		c->fault = r.fault;
	if (r.delay_ms > *delay_ms)
		*delay_ms = r.delay_ms;
}

// Looks up each query of the form. Modifies the text.
static int classify(struct conn *c, char *query)
{
	static const char before[] = "label_replace((", behind[] = "\n),\"" FUSE_LABEL "\",\"";
	char *queries[FUSE_MAX];
	int delay_ms = 0;
	c->fault = QUERY_ANSWERED;
	c->n = 0;
	if (!strstr(query, FUSE_LABEL)) {
		c->marks[c->n++][0] = '\0';
		look_up(c, query, 1, &delay_ms);
		return delay_ms;
	}
	for (char *at = query, *end; c->n < FUSE_MAX && (end = strstr(at, behind)); c->n++) {
		*end = '\0';
		queries[c->n] = strstr(at, before) + sizeof before - 1;
		at = end + sizeof behind - 1;
		snprintf(c->marks[c->n], sizeof c->marks[0], "%.*s", (int)strcspn(at, "\""), at);
	}
	for (size_t i = 0; i < c->n; i++)
		look_up(c, queries[i], c->n, &delay_ms);
	return delay_ms;
}

// Removes one complete request from the input, unless one is in progress. May free the connection.
static void take_request(struct conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	static char text[FORM_BYTES_MAX];
	if (c->is_busy || end.pos < 0)
		return;
	size_t head = (size_t)end.pos + 4, body = 0;
	if (head >= sizeof text)
		abort();
	evbuffer_copyout(in, text, head);
	text[head] = '\0';
	const char *length = strcasestr(text, "\r\ncontent-length:");
	for (const char *p = length ? length + 17 + strspn(length + 17, " ") : ""; *p >= '0' && *p <= '9'; p++)
		body = body * 10 + (size_t)(*p - '0');
	if (body >= sizeof text)
		abort();
	if (evbuffer_get_length(in) < head + body)
		return;
	evbuffer_drain(in, head);
	evbuffer_remove(in, text, body);
	text[body] = '\0';
	char *query = strstr(text, "query=");
	query = query ? query + 6 : text;
	query[strcspn(query, "&")] = '\0';
	if (http_percent_decode(query, strlen(query), true) < 0)
		abort();
	c->server->n_requests++;
	c->is_busy = true;
	int delay_ms = classify(c, query);
	if (delay_ms == 0) {
		reply(c);
		return;
	}
	struct timeval wait = {.tv_sec = delay_ms / 1000, .tv_usec = delay_ms % 1000 * 1000};
	event_add(c->timer, &wait);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	(void)bev;
	take_request(arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		conn_free(arg);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer, int len, void *arg)
{
	(void)listener;
	(void)peer;
	(void)len;
	struct query_server *s = arg;
	struct conn *c = calloc(1, sizeof *c);
	if (!c)
		abort();
	c->server = s;
	c->bev = bufferevent_socket_new(s->loop, fd, BEV_OPT_CLOSE_ON_FREE);
	c->timer = evtimer_new(s->loop, on_timer, c);
	if (!c->bev || !c->timer)
		abort();
	LIST_INSERT_HEAD(&s->conns, c, link);
	bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

struct query_server *query_server_new(struct event_base *loop, query_server_fn *fn, void *arg)
{
	struct query_server *s = calloc(1, sizeof *s);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	if (!s)
		return NULL;
	s->loop = loop;
	s->fn = fn;
	s->arg = arg;
	LIST_INIT(&s->conns);
	s->listener = evconnlistener_new_bind(loop, on_accept, s, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 512,
	                                      (struct sockaddr *)&at, sizeof at);
	if (!s->listener || getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&at, &len) < 0) {
		query_server_free(s);
		return NULL;
	}
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", (unsigned)ntohs(at.sin_port));
	return s;
}

void query_server_free(struct query_server *s)
{
	if (!s)
		return;
	struct conn *c;
	while ((c = LIST_FIRST(&s->conns)))
		conn_free(c);
	if (s->listener)
		evconnlistener_free(s->listener);
	free(s);
}

const char *query_server_url(const struct query_server *s)
{
	return s->url;
}

static bool is_hanging(const struct conn *c)
{
	return c->is_busy && c->fault == QUERY_HANGS && !evtimer_pending(c->timer, NULL);
}

int query_server_hanging(const struct query_server *s)
{
	struct conn *c;
	int n = 0;
	LIST_FOREACH(c, &s->conns, link)
	n += is_hanging(c);
	return n;
}

void query_server_release(struct query_server *s, enum query_fault fault)
{
	struct conn *c, *next;
	for (c = LIST_FIRST(&s->conns); c; c = next) {
		next = LIST_NEXT(c, link);
		if (!is_hanging(c))
			continue;
		c->fault = fault;
		reply(c);
	}
}

int query_server_requests(const struct query_server *s)
{
	return s->n_requests;
}

void query_world_open(struct query_world *w, int max_in_flight, query_server_fn *fn, void *arg)
{
	struct err e;
	*w = (struct query_world){.loop = event_base_new()};
	clock_init_manual(&w->clock, 1700000000000);
	w->server = query_server_new(w->loop, fn, arg);
	assert_non_null(w->server);
	const struct promql_source_options o = {
	        .name = "default",
	        .max_in_flight = max_in_flight,
	        .query = {.url = query_server_url(w->server), .max_body_bytes = QUERY_SERVER_BODY_MAX}};
	w->sources = promql_sources_new(w->loop, &w->clock, &o, 1, &e);
	assert_non_null(w->sources);
	w->hub = query_hub_new(w->sources);
	assert_non_null(w->hub);
}

void query_world_close(struct query_world *w)
{
	promql_sources_cancel(w->sources);
	query_hub_flush(w->hub);
	query_hub_free(w->hub);
	promql_sources_free(w->sources);
	query_server_free(w->server);
	event_base_free(w->loop);
}
