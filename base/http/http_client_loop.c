// SPDX-License-Identifier: Apache-2.0
// The loop side of the HTTP client: libcurl requests sockets and timers, libevent provides them.
#include <stdlib.h>

#include "base/timer.h"

#include "base/http/http_client_internal.h"

// One socket that curl wants watched.
struct http_socket {
	LIST_ENTRY(http_socket) link;
	struct http_client *client;
	struct event event;
};

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct http_socket *s = arg;
	struct http_client *c = s->client;
	int mask = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
	int running;
	curl_multi_socket_action(c->multi, fd, mask, &running); // may free s
	http_client_reap(c);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct http_client *c = arg;
	int running;
	curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	http_client_reap(c);
}

static int socket_changed(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct http_client *c = arg;
	struct http_socket *s = socket_arg;
	if (what == CURL_POLL_REMOVE) {
		if (s) {
			event_del(&s->event);
			LIST_REMOVE(s, link);
			free(s);
			curl_multi_assign(c->multi, fd, NULL);
		}
		return 0;
	}
	if (s) {
		event_del(&s->event);
	} else {
		s = calloc(1, sizeof *s);
		if (!s)
			return -1; // curl then ends every transfer with CURLM_ABORTED_BY_CALLBACK
		s->client = c;
		LIST_INSERT_HEAD(&c->sockets, s, link);
		curl_multi_assign(c->multi, fd, s);
	}
	short events =
	        (short)(EV_PERSIST | (what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
	if (event_assign(&s->event, c->loop, fd, events, on_socket, s) < 0 || event_add(&s->event, NULL) < 0)
		return -1;
	return 0;
}

static int timer_changed(CURLM *multi, long timeout_ms, void *arg)
{
	struct http_client *c = arg;
	if (timeout_ms < 0)
		return evtimer_del(c->timer);
	return timer_start(c->timer, timeout_ms);
}

int http_loop_attach(struct http_client *c, struct err *e)
{
	LIST_INIT(&c->sockets);
	c->timer = evtimer_new(c->loop, on_timer, c);
	if (!c->timer)
		return err_set(e, ERR_INTERNAL, "http client: out of memory");
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, socket_changed);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, timer_changed);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	return 0;
}

void http_loop_detach(struct http_client *c)
{
	if (c->multi) {
		curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, NULL);
		curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, NULL);
	}
	struct http_socket *s;
	while ((s = LIST_FIRST(&c->sockets))) {
		event_del(&s->event);
		LIST_REMOVE(s, link);
		free(s);
	}
	if (c->timer)
		event_free(c->timer);
	c->timer = NULL;
}
