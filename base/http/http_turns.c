// SPDX-License-Identifier: Apache-2.0
// Handlers whose reply takes long to write: one of them runs in each turn of the event loop.
#include "base/http/http_server.h"

#include <utlist.h>

#include "base/base.h"
#include "base/timer.h"

struct turn_route {
	struct http_turns *turns;
	http_handler_fn *fn;
	void *arg;
};

struct turn_request { // one per connection at most
	struct turn_request *prev, *next;
	const struct turn_route *route;
	struct http_exchange *x;
};

struct http_turns {
	struct event *timer; // pending: a handler has run in this turn
	struct turn_request *waiting;
	struct turn_route routes[HTTP_SERVER_ROUTES_MAX];
	size_t n_routes;
};

static void run(struct http_turns *t, const struct turn_route *r, struct http_exchange *x)
{
	timer_start(t->timer, 0);
	r->fn(r->arg, x);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct http_turns *t = arg;
	struct turn_request *q = t->waiting;
	if (!q)
		return;
	const struct turn_route *r = q->route;
	struct http_exchange *x = q->x;
	DL_DELETE(t->waiting, q);
	free(q);
	run(t, r, x);
}

static void on_request(void *arg, struct http_exchange *x)
{
	const struct turn_route *r = arg;
	struct http_turns *t = r->turns;
	if (!evtimer_pending(t->timer, NULL)) {
		run(t, r, x);
		return;
	}
	struct turn_request *q = must_alloc(calloc(1, sizeof *q));
	q->route = r;
	q->x = x;
	DL_APPEND(t->waiting, q);
}

struct http_turns *http_turns_new(struct event_base *loop, struct err *e)
{
	struct http_turns *t = calloc(1, sizeof *t);
	if (t && (t->timer = evtimer_new(loop, on_turn, t)))
		return t;
	free(t);
	err_set(e, ERR_INTERNAL, "out of memory");
	return NULL;
}

void http_turns_free(struct http_turns *t)
{
	if (!t)
		return;
	while (t->waiting) {
		struct turn_request *q = t->waiting;
		DL_DELETE(t->waiting, q);
		free(q);
	}
	event_free(t->timer);
	free(t);
}

int http_turns_route(struct http_turns *t, struct http_server *s, const char *path, http_handler_fn *fn, void *arg,
                     struct err *e)
{
	if (t->n_routes == HTTP_SERVER_ROUTES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d routes", HTTP_SERVER_ROUTES_MAX);
	struct turn_route *r = &t->routes[t->n_routes];
	*r = (struct turn_route){t, fn, arg};
	if (http_server_route(s, path, on_request, r, e) < 0)
		return -1;
	t->n_routes++;
	return 0;
}
