// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_server.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/http/http_server_internal.h"

#include <openssl/ssl.h>

// What the kernel may hold of the requests of one connection; the client keeps the rest.
static int receive_bytes(const struct http_server *s)
{
	return s->max_body_bytes < 65536 ? HTTP_SERVER_RECEIVE_BYTES : (int)s->read_ahead_bytes;
}

// Silent connections must not use up the descriptors that the program needs for its own work.
static int silent_within_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 8 > HTTP_SERVER_SILENT_MAX)
		return HTTP_SERVER_SILENT_MAX;
	return limit.rlim_cur >= 16 ? (int)(limit.rlim_cur / 8) : 2;
}

struct http_server *http_server_new(const struct http_server_options *o, struct err *e)
{
	assert(o && o->loop && o->listen);
	if (o->head_ms < 0 || o->body_ms < 0 || o->reply_ms < 0 || o->idle_ms < 0 || o->max_connections < 0 ||
	    o->max_peer_connections < 0 || o->max_silent < 0) {
		err_set(e, ERR_USAGE, "http server: a negative ceiling");
		return NULL;
	}
	struct http_server *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(e, ERR_INTERNAL, "http server: out of memory");
		return NULL;
	}
	s->listen_fd = -1;
	s->loop = o->loop;
	s->on_event = http_conn_event;
	http_ranks_init(&s->ranks);
	LIST_INIT(&s->exchanges);
	if (http_handshake_queue_init(s, e) < 0) {
		http_server_free(s);
		return NULL;
	}
	s->max_body_bytes = o->max_body_bytes ? o->max_body_bytes : HTTP_SERVER_BODY_BYTES_MAX;
	s->max_header_bytes = o->max_header_bytes ? o->max_header_bytes : HTTP_SERVER_HEADER_BYTES_MAX;
	s->read_ahead_bytes = s->max_header_bytes + (s->max_body_bytes < 65536 ? s->max_body_bytes : 65536);
	s->max_connections = o->max_connections ? o->max_connections : HTTP_SERVER_CONNECTIONS_MAX;
	s->max_unread_bytes = o->max_unread_bytes ? o->max_unread_bytes : HTTP_SERVER_UNREAD_BYTES_MAX;
	s->max_peer_connections = o->max_peer_connections ? o->max_peer_connections : HTTP_SERVER_PEER_CONNECTIONS_MAX;
	s->max_silent = o->max_silent ? o->max_silent : silent_within_descriptors();
	s->head_ms = o->head_ms ? o->head_ms : HTTP_SERVER_HEAD_MS;
	s->body_ms = o->body_ms ? o->body_ms : HTTP_SERVER_BODY_MS;
	s->reply_ms = o->reply_ms ? o->reply_ms : HTTP_SERVER_REPLY_MS;
	s->idle_ms = o->idle_ms ? o->idle_ms : HTTP_SERVER_IDLE_MS;
	s->site = o->site;
	if (http_server_tls_new(o, &s->tls, e) < 0 || http_listen_start(s, o->listen, receive_bytes(s), e) < 0) {
		http_server_free(s);
		return NULL;
	}
	return s;
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	assert(s->in_handler == 0);
	http_listen_stop(s);
	struct http_conn *conn;
	for (int i = 0; i < HTTP_RANK__COUNT; i++)
		while ((conn = TAILQ_FIRST(&s->ranks.conns[i])))
			http_conn_event(conn, HTTP_EVENT_LOST);
	struct http_exchange *x;
	while ((x = LIST_FIRST(&s->exchanges)))
		http_exchange_free(x);
	for (size_t i = 0; i < s->n_routes; i++)
		free(s->routes[i].path);
	http_handshake_queue_done(s);
	SSL_CTX_free(s->tls);
	free(s);
}

uint16_t http_server_port(const struct http_server *s)
{
	return s->port;
}

void http_server_get_stats(const struct http_server *s, struct http_server_stats *ret_stats)
{
	*ret_stats = s->stats;
}
