// SPDX-License-Identifier: Apache-2.0
#include "test/support/http_request.h"

#include <assert.h>
#include <event2/buffer.h>

#include "base/http/http_server_internal.h"

const char *http_exchange_body(const struct http_exchange *x, size_t *ret_len)
{
	if (ret_len)
		*ret_len = x->body.len;
	return buf_str(&x->body);
}

const char *http_exchange_host(const struct http_exchange *x)
{
	return x->head.host;
}

void http_server_drop_idle(struct http_server *s)
{
	assert(s->in_handler == 0);
	static const enum http_conn_rank waiting[] = {HTTP_RANK_SILENT, HTTP_RANK_IDLE};
	for (size_t i = 0; i < sizeof waiting / sizeof waiting[0]; i++)
		for (struct http_conn *conn = TAILQ_FIRST(&s->ranks.conns[waiting[i]]), *next; conn; conn = next) {
			next = TAILQ_NEXT(conn, in_rank);
			bool is_waiting = conn->state == HTTP_CONN_HEAD || conn->state == HTTP_CONN_IDLE;
			if (is_waiting && evbuffer_get_length(bufferevent_get_input(conn->bev)) == 0)
				http_conn_event(conn, HTTP_EVENT_LOST);
		}
}
