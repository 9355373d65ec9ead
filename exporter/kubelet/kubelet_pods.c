// SPDX-License-Identifier: Apache-2.0
#include "exporter/kubelet/kubelet_pods.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "exporter/kubelet/h2c.h"

#define LIST_PATH "/v1.PodResourcesLister/List"

// The request in flight. Allocated on its own, so that no memory is used between requests.
struct call {
	struct bufferevent *bev;
	struct h2c h2c;
	int64_t start_ms;
};

struct kubelet_pods {
	struct kubelet_pods_options options;
	struct sockaddr_un address;
	struct event tick, deadline;
	struct call *call; // NULL between requests
	char last_error[ERR_MSG_BYTES];

	pthread_mutex_t lock; // protects the members below
	struct pod_map *map;
	int64_t map_ms; // mono_ms when it arrived
	struct kubelet_pods_status status;
};

static void end_call(struct kubelet_pods *p)
{
	struct call *c = p->call;
	p->call = NULL;
	evtimer_del(&p->deadline);
	if (!c)
		return;
	if (c->bev)
		bufferevent_free(c->bev);
	h2c_done(&c->h2c);
	free(c);
}

// Completes the request with a new map, or with NULL and *e, which keeps the old map.
static void finish(struct kubelet_pods *p, struct pod_map *map, const struct err *e)
{
	int64_t now_ms = clock_mono_ms(p->options.clock);
	struct pod_map *old = NULL;
	if (map)
		pod_map_follow(map, p->map); // only this thread replaces p->map
	if (map && p->options.on_map)
		p->options.on_map(p->options.arg, map);
	pthread_mutex_lock(&p->lock);
	struct kubelet_pods_status *st = &p->status;
	st->polls++;
	st->errors += !map;
	st->last_ok = map != NULL;
	st->last_ms = p->call ? now_ms - p->call->start_ms : 0;
	if (map) {
		old = p->map;
		p->map = map;
		p->map_ms = now_ms;
		st->has_map = true;
		st->entries = pod_map_entries(map);
	}
	pthread_mutex_unlock(&p->lock);
	pod_map_free(old);
	end_call(p);
	if (!map && strcmp(p->last_error, e->msg) != 0)
		LOG(p->options.log, LOG_WARNING, "Pod-resources request failed, retrying",
		    LOG_S("socket", p->options.socket), LOG_S("err", e->msg));
	else if (map && p->last_error[0])
		LOG(p->options.log, LOG_INFO, "Pod-resources socket recovered", LOG_S("socket", p->options.socket));
	snprintf(p->last_error, sizeof p->last_error, "%s", map ? "" : e->msg);
}

static void take_reply(struct kubelet_pods *p)
{
	struct err e;
	struct buf *message = &p->call->h2c.message;
	struct pod_map *map = pod_map_parse(buf_str(message), message->len, &p->options.map, &e);
	finish(p, map, &e);
}

static void send_out(struct call *c)
{
	if (c->h2c.out.len)
		bufferevent_write(c->bev, c->h2c.out.data, c->h2c.out.len);
	buf_reset(&c->h2c.out);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct kubelet_pods *p = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	struct err e;
	int rc = 0;
	for (size_t n; rc == 0 && (n = evbuffer_get_contiguous_space(in)) > 0; evbuffer_drain(in, n))
		rc = h2c_feed(&p->call->h2c, evbuffer_pullup(in, (ev_ssize_t)n), n, &e);
	if (rc == 0)
		send_out(p->call);
	else if (rc > 0)
		take_reply(p);
	else
		finish(p, NULL, &e);
}

static void connection_failed(struct kubelet_pods *p, int code)
{
	struct err e;
	err_set_code(&e, ERR_UNREACHABLE, code, "%s",
	             code == ENOENT   ? "no such socket: is its folder mounted?"
	             : code == EACCES ? "permission denied: the socket requires root or its group"
	                              : strerror(code));
	finish(p, NULL, &e);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct kubelet_pods *p = arg;
	struct err e;
	int code = EVUTIL_SOCKET_ERROR();
	if (what & BEV_EVENT_CONNECTED)
		return;
	if (!(what & BEV_EVENT_EOF)) {
		connection_failed(p, code);
		return;
	}
	err_set(&e, ERR_UNREACHABLE, "the kubelet closed the connection without a reply");
	finish(p, NULL, &e);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct kubelet_pods *p = arg;
	struct err e;
	err_set(&e, ERR_TIMEOUT, "no reply within %d ms", (int)p->options.timeout_ms);
	finish(p, NULL, &e);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct kubelet_pods *p = arg;
	struct err e;
	if (p->call)
		return; // the interval is shorter than the deadline, and the last request is still in flight
	struct call *c = p->call = err_calloc(sizeof *c, &e);
	if (c)
		c->start_ms = clock_mono_ms(p->options.clock);
	if (!c || h2c_init(&c->h2c, LIST_PATH, H2C_MESSAGE_BYTES_MAX, &e) < 0) {
		finish(p, NULL, &e);
		return;
	}
	// A new connection each time, because a restarted kubelet creates a new socket. Callbacks are deferred: a
	// connect that fails immediately must not complete the request from within bufferevent_socket_connect().
	c->bev = bufferevent_socket_new(p->options.loop, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!c->bev || timer_start(&p->deadline, p->options.timeout_ms) < 0) {
		err_no_memory(&e);
		finish(p, NULL, &e);
		return;
	}
	bufferevent_setcb(c->bev, on_read, NULL, on_event, p);
	send_out(c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	errno = 0;
	if (bufferevent_socket_connect(c->bev, (struct sockaddr *)&p->address, (int)sizeof p->address) < 0)
		connection_failed(p, errno);
}

struct kubelet_pods *kubelet_pods_new(const struct kubelet_pods_options *options, struct err *e)
{
	struct kubelet_pods *p = err_calloc(sizeof *p, e);
	if (!p)
		return NULL;
	p->options = *options;
	p->options.interval_ms = options->interval_ms ? options->interval_ms : KUBELET_PODS_INTERVAL_MS;
	p->options.timeout_ms = options->timeout_ms ? options->timeout_ms : KUBELET_PODS_TIMEOUT_MS;
	p->options.stale_ms = options->stale_ms ? options->stale_ms : KUBELET_PODS_STALE_MS;
	pthread_mutex_init(&p->lock, NULL);
	size_t len = strlen(options->socket);
	evtimer_assign(&p->deadline, options->loop, on_deadline, p);
	event_assign(&p->tick, options->loop, -1, EV_PERSIST, on_tick, p);
	if (len >= sizeof p->address.sun_path) {
		err_set(e, ERR_LIMIT, "the socket path \"%.100s\" has %zu bytes, the ceiling is %zu", options->socket,
		        len, sizeof p->address.sun_path - 1);
	} else if (timer_start(&p->tick, p->options.interval_ms) < 0) {
		err_set(e, ERR_INTERNAL, "cannot create timers");
	} else {
		p->address.sun_family = AF_UNIX;
		memcpy(p->address.sun_path, options->socket, len + 1);
		event_active(&p->tick, EV_TIMEOUT, 0); // send the first request without waiting for the interval
		return p;
	}
	kubelet_pods_free(p);
	return NULL;
}

void kubelet_pods_free(struct kubelet_pods *p)
{
	if (!p)
		return;
	end_call(p);
	event_del(&p->tick);
	pod_map_free(p->map);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static bool is_stale(const struct kubelet_pods *p, int64_t now_ms)
{
	return p->map && now_ms - p->map_ms > p->options.stale_ms;
}

void kubelet_pods_get_status(struct kubelet_pods *p, struct kubelet_pods_status *ret_status)
{
	int64_t now_ms = clock_mono_ms(p->options.clock);
	pthread_mutex_lock(&p->lock);
	p->status.age_ms = p->map ? now_ms - p->map_ms : -1;
	p->status.stale = is_stale(p, now_ms);
	*ret_status = p->status;
	pthread_mutex_unlock(&p->lock);
}

const struct pod_map *kubelet_pods_acquire(struct kubelet_pods *p)
{
	pthread_mutex_lock(&p->lock);
	return is_stale(p, clock_mono_ms(p->options.clock)) ? NULL : p->map;
}

void kubelet_pods_release(struct kubelet_pods *p, size_t dropped)
{
	p->status.dropped = dropped;
	pthread_mutex_unlock(&p->lock);
}
