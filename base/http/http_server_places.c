// SPDX-License-Identifier: Apache-2.0
// Chooses which connections to close at a ceiling: by rank, per peer and in total.
//
// Connections without a complete request have a pool of their own. However many arrive, they evict only each other: the
// address with the most loses its oldest. A client whose address has fewer connections than an attacker's is therefore
// never evicted, and any other client has as much time to send its request as it takes to replace the whole pool. A
// complete request then needs one of the other places, which idle connections and slow readers give up for it.
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/http/http_server_internal.h"

const char *const http_close_cause_names[] = {
        [HTTP_CLOSE_EVICTED_SILENT] = "evicted_silent", [HTTP_CLOSE_EVICTED_IDLE] = "evicted_idle",
        [HTTP_CLOSE_EVICTED_SLOW] = "evicted_slow",     [HTTP_CLOSE_REQUEST_LATE] = "request_late",
        [HTTP_CLOSE_REPLY_LATE] = "reply_late",         [HTTP_CLOSE_REFUSED] = "refused",
};
_Static_assert(sizeof http_close_cause_names / sizeof http_close_cause_names[0] == HTTP_CLOSE__COUNT, "one per cause");

// ---- ranks ----

void http_ranks_init(struct http_ranks *r)
{
	for (int i = 0; i < HTTP_RANK__COUNT; i++) {
		TAILQ_INIT(&r->of_all[i]);
		r->n[i] = 0;
	}
}

static void join(struct http_conn *conn, enum http_conn_rank rank)
{
	conn->rank = rank;
	conn->joined = ++conn->server->n_joined;
	TAILQ_INSERT_TAIL(&conn->server->ranks.of_all[rank], conn, in_all);
	TAILQ_INSERT_TAIL(&conn->peer->of_peer[rank], conn, in_peer);
	conn->server->ranks.n[rank]++;
	conn->peer->n[rank]++;
}

static void part(struct http_conn *conn)
{
	TAILQ_REMOVE(&conn->server->ranks.of_all[conn->rank], conn, in_all);
	TAILQ_REMOVE(&conn->peer->of_peer[conn->rank], conn, in_peer);
	conn->server->ranks.n[conn->rank]--;
	conn->peer->n[conn->rank]--;
}

void http_conn_enter(struct http_conn *conn, enum http_conn_state state)
{
	static const enum http_conn_rank ranks[] = {
	        [HTTP_CONN_HEAD] = HTTP_RANK_SILENT,      [HTTP_CONN_BODY] = HTTP_RANK_SILENT,
	        [HTTP_CONN_IDLE] = HTTP_RANK_IDLE,        [HTTP_CONN_HANDLING] = HTTP_RANK_BUSY,
	        [HTTP_CONN_STREAMING] = HTTP_RANK_BUSY,   [HTTP_CONN_WRITING] = HTTP_RANK_SLOW,
	        [HTTP_CONN_LINGERING] = HTTP_RANK_SILENT, [HTTP_CONN_CLOSING] = HTTP_RANK_CLOSING,
	        [HTTP_CONN_HELLO] = HTTP_RANK_HELLO,
	};
	_Static_assert(sizeof ranks / sizeof ranks[0] == HTTP_CONN__COUNT, "one per state");
	conn->state = state;
	if (ranks[state] == conn->rank)
		return;
	part(conn);
	join(conn, ranks[state]);
}

void http_conn_renew(struct http_conn *conn)
{
	part(conn);
	join(conn, conn->rank);
}

// ---- peers ----

static struct http_peer_list *bucket_of(struct http_server *s, const char *name)
{
	uint32_t hash = 2166136261u; // FNV-1a
	for (const char *p = name; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 16777619u;
	return &s->peers[hash % HTTP_SERVER_PEER_BUCKETS];
}

bool http_peer_join(struct http_conn *conn, const char *name)
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
		for (int i = 0; i < HTTP_RANK__COUNT; i++)
			TAILQ_INIT(&peer->of_peer[i]);
		TAILQ_INIT(&peer->hellos);
		LIST_INSERT_HEAD(bucket, peer, link);
	}
	conn->peer = peer;
	join(conn, HTTP_RANK_HELLO);
	return true;
}

void http_peer_part(struct http_conn *conn)
{
	struct http_peer *peer = conn->peer;
	part(conn);
	for (int i = 0; i < HTTP_RANK__COUNT; i++)
		if (peer->n[i] > 0)
			return;
	LIST_REMOVE(peer, link);
	free(peer);
}

// ---- giving way ----

static const enum http_close_cause causes[] = {
        [HTTP_RANK_HELLO] = HTTP_CLOSE_EVICTED_SILENT,
        [HTTP_RANK_SILENT] = HTTP_CLOSE_EVICTED_SILENT,
        [HTTP_RANK_IDLE] = HTTP_CLOSE_EVICTED_IDLE,
        [HTTP_RANK_SLOW] = HTTP_CLOSE_EVICTED_SLOW,
};
_Static_assert(sizeof causes / sizeof causes[0] == HTTP_RANK_BUSY, "one per rank that gives way");

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
	http_conn_free(conn);
}

// Returns the oldest connection of `rank` of the address that has the most of them; of several such addresses, the one
// with the oldest connection. There must be at least one.
static struct http_conn *silent_that_gives_way(struct http_server *s, enum http_conn_rank rank)
{
	struct http_conn *first = NULL;
	for (size_t i = 0; i < HTTP_SERVER_PEER_BUCKETS; i++) {
		struct http_peer *peer;
		LIST_FOREACH(peer, &s->peers[i], link)
		{
			struct http_conn *oldest = TAILQ_FIRST(&peer->of_peer[rank]);
			int more = oldest && first ? peer->n[rank] - first->peer->n[rank] : 0;
			if (oldest && (!first || more > 0 || (more == 0 && oldest->joined < first->joined)))
				first = oldest;
		}
	}
	return first;
}

static int places_of(const struct http_server *s, enum http_conn_rank rank)
{
	bool has_tls_state = s->tls && rank == HTTP_RANK_SILENT;
	return has_tls_state && s->max_silent > HTTP_SERVER_SILENT_TLS_MAX ? HTTP_SERVER_SILENT_TLS_MAX : s->max_silent;
}

bool http_places_evict_any(struct http_server *s)
{
	for (enum http_conn_rank rank = HTTP_RANK_HELLO; rank <= HTTP_RANK_SILENT; rank++)
		if (s->ranks.n[rank] > 0) {
			evict(silent_that_gives_way(s, rank));
			return true;
		}
	for (int rank = HTTP_RANK_SILENT + 1; rank < HTTP_RANK_BUSY; rank++)
		if (s->ranks.n[rank] > 0) {
			evict(TAILQ_FIRST(&s->ranks.of_all[rank]));
			return true;
		}
	return false;
}

// The loop is needed because other connections may have started to linger, which counts as silent.
void http_places_admit_silent(const struct http_conn *conn)
{
	struct http_server *s = conn->server;
	enum http_conn_rank rank = conn->rank;
	while (s->ranks.n[rank] > places_of(s, rank))
		evict(silent_that_gives_way(s, rank));
}

static int with_request(const int n[HTTP_RANK__COUNT])
{
	return n[HTTP_RANK_IDLE] + n[HTTP_RANK_SLOW] + n[HTTP_RANK_BUSY];
}

bool http_places_admit_request(const struct http_conn *conn)
{
	struct http_server *s = conn->server;
	struct http_peer *peer = conn->peer;
	if (peer->n[HTTP_RANK_BUSY] >= s->max_peer_connections || s->ranks.n[HTTP_RANK_BUSY] >= s->max_connections) {
		s->stats.closed[HTTP_CLOSE_REFUSED]++;
		return false;
	}
	while (with_request(peer->n) >= s->max_peer_connections)
		evict(TAILQ_FIRST(&peer->of_peer[peer->n[HTTP_RANK_IDLE] > 0 ? HTTP_RANK_IDLE : HTTP_RANK_SLOW]));
	while (with_request(s->ranks.n) >= s->max_connections)
		evict(TAILQ_FIRST(&s->ranks.of_all[s->ranks.n[HTTP_RANK_IDLE] > 0 ? HTTP_RANK_IDLE : HTTP_RANK_SLOW]));
	return true;
}

void http_places_admit_reply(const struct http_conn *conn, size_t len)
{
	struct http_server *s = conn->server;
	struct http_conn *other, *next;
	size_t unread = len;
	TAILQ_FOREACH(other, &s->ranks.of_all[HTTP_RANK_SLOW], in_all)
	if (other != conn)
		unread += other->reply_bytes;
	for (other = TAILQ_FIRST(&s->ranks.of_all[HTTP_RANK_SLOW]); other && unread > s->max_unread_bytes;
	     other = next) {
		next = TAILQ_NEXT(other, in_all);
		if (other == conn)
			continue;
		if (other->reply_bytes == 0)
			continue; // the kernel has it
		unread -= other->reply_bytes;
		send_at_once(other);
		s->stats.closed[HTTP_CLOSE_EVICTED_SLOW]++;
		http_conn_free_later(other); // the caller may be running in its callback
	}
}
