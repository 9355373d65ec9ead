// SPDX-License-Identifier: Apache-2.0
// Chooses which connections to close at a limit: by rank, per peer and in total.
//
// Connections without a complete request have a pool of their own. However many arrive, they evict only each other: the
// address with the most loses its oldest. A client whose address has fewer connections than an attacker's is therefore
// never evicted, and any other client has as much time to send its request as it takes to replace the whole pool. A
// complete request is counted with the others, of which idle connections and slow readers are closed for it.
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/hash.h"
#include "base/http/http_server_internal.h"

const char *const http_close_cause_names[] = {
        [HTTP_CLOSE_EVICTED_SILENT] = "evicted_silent", [HTTP_CLOSE_EVICTED_IDLE] = "evicted_idle",
        [HTTP_CLOSE_EVICTED_SLOW] = "evicted_slow",     [HTTP_CLOSE_REQUEST_LATE] = "request_late",
        [HTTP_CLOSE_REPLY_LATE] = "reply_late",         [HTTP_CLOSE_REFUSED] = "refused",
};
_Static_assert(sizeof http_close_cause_names / sizeof http_close_cause_names[0] == HTTP_CLOSE__COUNT, "one per cause");

// ---- ranks ----

static void add_to_rank(struct http_conn *conn, enum http_conn_rank rank)
{
	conn->rank = rank;
	TAILQ_INSERT_TAIL(&conn->server->ranks.conns[rank], conn, in_rank);
	conn->server->ranks.n[rank]++;
	conn->peer->n[rank]++;
}

static void remove_from_rank(struct http_conn *conn)
{
	TAILQ_REMOVE(&conn->server->ranks.conns[conn->rank], conn, in_rank);
	conn->server->ranks.n[conn->rank]--;
	conn->peer->n[conn->rank]--;
}

void http_conn_set_rank(struct http_conn *conn, enum http_conn_rank rank)
{
	remove_from_rank(conn);
	add_to_rank(conn, rank);
}

// Returns the oldest connection of a rank, of one peer or (NULL) of all. There must be at least one.
static struct http_conn *oldest(struct http_server *s, enum http_conn_rank rank, const struct http_peer *peer)
{
	struct http_conn *conn = TAILQ_FIRST(&s->ranks.conns[rank]);
	while (peer && conn->peer != peer)
		conn = TAILQ_NEXT(conn, in_rank);
	return conn;
}

// ---- peers ----

static struct http_peer_list *bucket_of(struct http_server *s, const char *name)
{
	return &s->peers[hash_text(HASH_START, name) % HTTP_SERVER_PEER_BUCKETS];
}

bool http_peer_add(struct http_conn *conn, const char *name)
{
	struct http_peer_list *bucket = bucket_of(conn->server, name);
	struct http_peer *peer;
	LIST_FOREACH(peer, bucket, link)
	if (strcmp(peer->name, name) == 0)
		break;
	if (!peer) {
		peer = calloc(1, sizeof *peer);
		if (!peer)
			return false;
		memcpy(peer->name, name, sizeof peer->name);
		TAILQ_INIT(&peer->handshakes);
		LIST_INSERT_HEAD(bucket, peer, link);
	}
	conn->peer = peer;
	peer->n_conns++;
	add_to_rank(conn, HTTP_RANK_HANDSHAKE);
	return true;
}

void http_peer_remove(struct http_conn *conn)
{
	struct http_peer *peer = conn->peer;
	remove_from_rank(conn);
	if (--peer->n_conns > 0)
		return;
	LIST_REMOVE(peer, link);
	free(peer);
}

// ---- closing ----

static const enum http_close_cause causes[] = {
        [HTTP_RANK_HANDSHAKE] = HTTP_CLOSE_EVICTED_SILENT,
        [HTTP_RANK_SILENT] = HTTP_CLOSE_EVICTED_SILENT,
        [HTTP_RANK_IDLE] = HTTP_CLOSE_EVICTED_IDLE,
        [HTTP_RANK_SLOW] = HTTP_CLOSE_EVICTED_SLOW,
};
_Static_assert(sizeof causes / sizeof causes[0] == HTTP_RANK_BUSY, "one per rank that is closed at a limit");

// The reply may be as new as this turn of the loop and not yet offered to the kernel. The bytes that the kernel accepts
// now are delivered. With TLS the reply is lost, because its record has not been created.
static void send_at_once(struct http_conn *conn)
{
	if (conn->rank != HTTP_RANK_SLOW || http_server_tls_is_on(conn->bev))
		return;
	struct evbuffer *out = bufferevent_get_output(conn->bev);
	evbuffer_unfreeze(out, 1); // a bufferevent freezes the front of its output buffer
	evbuffer_write(out, bufferevent_getfd(conn->bev));
}

static void evict(struct http_conn *conn)
{
	send_at_once(conn);
	conn->server->stats.closed[causes[conn->rank]]++;
	conn->server->on_event(conn, HTTP_EVENT_LOST);
}

// Returns the oldest connection of `rank` of the address that has the most of them; of several such addresses, the one
// with the oldest connection. There must be at least one.
static struct http_conn *oldest_of_largest_peer(struct http_server *s, enum http_conn_rank rank)
{
	struct http_conn *first = oldest(s, rank, NULL), *conn;
	TAILQ_FOREACH(conn, &s->ranks.conns[rank], in_rank)
	if (conn->peer->n[rank] > first->peer->n[rank])
		first = conn;
	return first;
}

static int limit_of(const struct http_server *s, enum http_conn_rank rank)
{
	bool has_tls_state = s->tls && rank == HTTP_RANK_SILENT;
	return has_tls_state && s->max_silent > HTTP_SERVER_SILENT_TLS_MAX ? HTTP_SERVER_SILENT_TLS_MAX : s->max_silent;
}

bool http_limit_evict_any(struct http_server *s)
{
	enum http_conn_rank rank = HTTP_RANK_HANDSHAKE;
	while (rank < HTTP_RANK_BUSY && s->ranks.n[rank] == 0)
		rank++;
	if (rank == HTTP_RANK_BUSY)
		return false;
	evict(rank <= HTTP_RANK_SILENT ? oldest_of_largest_peer(s, rank) : oldest(s, rank, NULL));
	return true;
}

// The loop is needed because other connections may have started to linger, which counts as silent.
void http_limit_admit_silent(const struct http_conn *conn)
{
	struct http_server *s = conn->server;
	enum http_conn_rank rank = conn->rank;
	while (s->ranks.n[rank] > limit_of(s, rank))
		evict(oldest_of_largest_peer(s, rank));
}

static int with_request(const int n[HTTP_RANK__COUNT])
{
	return n[HTTP_RANK_IDLE] + n[HTTP_RANK_SLOW] + n[HTTP_RANK_BUSY];
}

// Of connections that have sent a request: idle ones are closed before slow ones.
static enum http_conn_rank closed_first(const int n[HTTP_RANK__COUNT])
{
	return n[HTTP_RANK_IDLE] > 0 ? HTTP_RANK_IDLE : HTTP_RANK_SLOW;
}

bool http_limit_admit_request(const struct http_conn *conn)
{
	struct http_server *s = conn->server;
	struct http_peer *peer = conn->peer;
	if (peer->n[HTTP_RANK_BUSY] >= s->max_peer_connections || s->ranks.n[HTTP_RANK_BUSY] >= s->max_connections) {
		s->stats.closed[HTTP_CLOSE_REFUSED]++;
		return false;
	}
	while (with_request(peer->n) >= s->max_peer_connections)
		evict(oldest(s, closed_first(peer->n), peer));
	while (with_request(s->ranks.n) >= s->max_connections)
		evict(oldest(s, closed_first(s->ranks.n), NULL));
	return true;
}

void http_limit_admit_reply(const struct http_conn *conn, size_t len)
{
	struct http_server *s = conn->server;
	struct http_conn_list *slow = &s->ranks.conns[HTTP_RANK_SLOW];
	struct http_conn *other, *next;
	size_t unread = len;
	TAILQ_FOREACH(other, slow, in_rank)
	unread += other != conn ? other->reply_bytes : 0;
	for (other = TAILQ_FIRST(slow); other && unread > s->max_unread_bytes; other = next) {
		next = TAILQ_NEXT(other, in_rank);
		if (other == conn || other->reply_bytes == 0) // 0: the kernel has it
			continue;
		unread -= other->reply_bytes;
		send_at_once(other);
		s->stats.closed[HTTP_CLOSE_EVICTED_SLOW]++;
		other->server->on_event(other, HTTP_EVENT_ABORT); // the caller may be running in its callback
	}
}
