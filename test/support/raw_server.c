// SPDX-License-Identifier: Apache-2.0
#include "test/support/raw_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#define REQUEST_BYTES_MAX (1024 * 1024)

struct raw_conn {
	LIST_ENTRY(raw_conn) link;
	struct raw_server *server;
	struct bufferevent *bev;
	struct event *timer;
	size_t step;
	bool waiting; // for the timer
	bool held;    // until raw_server_go
};

struct raw_server {
	struct event_base *loop;
	struct evconnlistener *listener;
	const struct raw_step *steps;
	size_t n_steps;
	uint16_t port;
	char *request;
	struct raw_server_stats stats;
	LIST_HEAD(raw_conn_list, raw_conn) conns;
};

static void conn_free(struct raw_conn *c)
{
	LIST_REMOVE(c, link);
	c->server->stats.open--;
	event_free(c->timer);
	bufferevent_free(c->bev);
	free(c);
}

// Takes one whole request off the input.
static bool take_request(struct raw_conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	if (end.pos < 0)
		return false;
	size_t head = (size_t)end.pos + 4, body = 0;
	char *text = calloc(1, head + 1);
	if (!text)
		abort();
	evbuffer_copyout(in, text, head);
	const char *length = strcasestr(text, "\r\ncontent-length:");
	if (length) {
		for (const char *p = length + 17 + strspn(length + 17, " "); *p >= '0' && *p <= '9'; p++)
			body = body * 10 + (size_t)(*p - '0');
	}
	free(text);
	if (head + body > REQUEST_BYTES_MAX || evbuffer_get_length(in) < head + body)
		return false;
	free(c->server->request);
	c->server->request = calloc(1, head + body + 1);
	if (!c->server->request)
		abort();
	evbuffer_remove(in, c->server->request, head + body);
	c->server->stats.requests++;
	return true;
}

// Plays steps until one must wait; the connection may be gone afterwards.
static void play(struct raw_conn *c)
{
	struct raw_server *s = c->server;
	while (!c->waiting && !c->held && c->step < s->n_steps) {
		const struct raw_step *step = &s->steps[c->step++];
		struct evbuffer *out = bufferevent_get_output(c->bev);
		size_t len = step->len ? step->len : step->data ? strlen(step->data) : 0;
		struct linger reset = {.l_onoff = 1};
		struct timeval tv = {.tv_sec = step->ms / 1000, .tv_usec = step->ms % 1000 * 1000};
		switch (step->kind) {
		case RAW_READ_REQUEST:
			if (!take_request(c)) {
				c->step--;
				return;
			}
			break;
		case RAW_SEND:
			evbuffer_add(out, step->data, len);
			break;
		case RAW_SEND_TIMES:
			for (int i = 0; i < step->times; i++)
				evbuffer_add(out, step->data, len);
			break;
		case RAW_WAIT:
			c->waiting = true;
			evtimer_add(c->timer, &tv);
			return;
		case RAW_HOLD:
			c->held = true;
			return;
		case RAW_REPEAT:
			c->step = 0;
			break;
		case RAW_RESET:
			setsockopt(bufferevent_getfd(c->bev), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
			conn_free(c);
			return;
		case RAW_CLOSE:
			if (evbuffer_get_length(out) > 0) {
				c->step--; // on_written comes back here
				return;
			}
			conn_free(c);
			return;
		}
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct raw_conn *c = arg;
	c->waiting = false;
	play(c);
}

static void on_data(struct bufferevent *bev, void *arg)
{
	play(arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	conn_free(arg);
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int len, void *arg)
{
	struct raw_server *s = arg;
	struct raw_conn *c = calloc(1, sizeof *c);
	if (!c)
		abort();
	c->server = s;
	c->bev = bufferevent_socket_new(s->loop, fd, BEV_OPT_CLOSE_ON_FREE);
	c->timer = evtimer_new(s->loop, on_timer, c);
	LIST_INSERT_HEAD(&s->conns, c, link);
	s->stats.accepted++;
	if (++s->stats.open > s->stats.open_max)
		s->stats.open_max = s->stats.open;
	bufferevent_setcb(c->bev, on_data, on_data, on_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	play(c);
}

struct raw_server *raw_server_new(struct event_base *loop, const struct raw_step *steps, size_t n_steps)
{
	struct raw_server *s = calloc(1, sizeof *s);
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof sin;
	if (!s)
		return NULL;
	s->loop = loop;
	s->steps = steps;
	s->n_steps = n_steps;
	LIST_INIT(&s->conns);
	s->listener = evconnlistener_new_bind(loop, on_accept, s, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 512,
	                                      (struct sockaddr *)&sin, sizeof sin);
	if (!s->listener || getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&sin, &len) < 0) {
		raw_server_free(s);
		return NULL;
	}
	s->port = ntohs(sin.sin_port);
	return s;
}

void raw_server_free(struct raw_server *s)
{
	if (!s)
		return;
	struct raw_conn *c;
	while ((c = LIST_FIRST(&s->conns)))
		conn_free(c);
	if (s->listener)
		evconnlistener_free(s->listener);
	free(s->request);
	free(s);
}

void raw_server_go(struct raw_server *s)
{
	for (struct raw_conn *c = LIST_FIRST(&s->conns), *next; c; c = next) {
		next = LIST_NEXT(c, link);
		if (!c->held)
			continue;
		c->held = false;
		play(c);
	}
}

uint16_t raw_server_port(const struct raw_server *s)
{
	return s->port;
}

const char *raw_server_request(const struct raw_server *s)
{
	return s->request ? s->request : "";
}

struct raw_server_stats raw_server_stats(const struct raw_server *s)
{
	return s->stats;
}
