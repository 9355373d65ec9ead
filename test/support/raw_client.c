// SPDX-License-Identifier: Apache-2.0
#include "test/support/raw_client.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"

#define RECEIVED_BYTES_MAX (32 * 1024 * 1024)

struct raw_client {
	struct bufferevent *bev;
	struct buf received;
	int closed;
	bool shut;
};

static void on_read(struct bufferevent *bev, void *arg)
{
	struct raw_client *c = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t len = evbuffer_get_length(in);
	buf_put(&c->received, evbuffer_pullup(in, -1), len);
	evbuffer_drain(in, len);
}

static void on_written(struct bufferevent *bev, void *arg)
{
	struct raw_client *c = arg;
	if (c->shut)
		shutdown(bufferevent_getfd(bev), SHUT_WR);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct raw_client *c = arg;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		c->closed = 1;
}

struct raw_client *raw_client_new(struct event_base *loop, uint16_t port)
{
	struct sockaddr_in sin = {
	        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
	struct raw_client *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->bev = bufferevent_socket_new(loop, -1, BEV_OPT_CLOSE_ON_FREE);
	buf_init(&c->received, RECEIVED_BYTES_MAX);
	bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	if (bufferevent_socket_connect(c->bev, (struct sockaddr *)&sin, sizeof sin) < 0) {
		raw_client_free(c);
		return NULL;
	}
	return c;
}

void raw_client_free(struct raw_client *c)
{
	if (!c)
		return;
	bufferevent_free(c->bev);
	buf_done(&c->received);
	free(c);
}

void raw_client_send(struct raw_client *c, const char *data, size_t len)
{
	bufferevent_write(c->bev, data, len ? len : strlen(data));
}

void raw_client_shutdown(struct raw_client *c)
{
	c->shut = true;
	if (evbuffer_get_length(bufferevent_get_output(c->bev)) == 0)
		shutdown(bufferevent_getfd(c->bev), SHUT_WR);
}

bool raw_client_is_shut(const struct raw_client *c)
{
	struct tcp_info info;
	socklen_t len = sizeof info;
	return getsockopt(bufferevent_getfd(c->bev), IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       info.tcpi_state == TCP_FIN_WAIT2;
}

void raw_client_pause(struct raw_client *c)
{
	bufferevent_disable(c->bev, EV_READ);
}

const char *raw_client_text(struct raw_client *c)
{
	return buf_str(&c->received);
}

const int *raw_client_closed(const struct raw_client *c)
{
	return &c->closed;
}

int raw_client_count(struct raw_client *c, const char *text)
{
	int n = 0;
	for (const char *p = raw_client_text(c); (p = strstr(p, text)); p += strlen(text))
		n++;
	return n;
}
