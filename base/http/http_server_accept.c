// SPDX-License-Identifier: Apache-2.0
// Accepts connections.
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http/http_server_internal.h"

#define ACCEPT_BATCH_MAX 64
#define ACCEPT_PAUSE_MS  100

static void format_peer(const struct sockaddr *sa, socklen_t len, char out[HTTP_SERVER_PEER_BYTES])
{
	static const char mapped[] = "::ffff:"; // prefix of an IPv4 client's address on a dual-stack socket
	char text[HTTP_SERVER_PEER_BYTES];
	if (getnameinfo(sa, len, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
		memcpy(text, "unknown", sizeof "unknown");
	bool is_mapped = strncmp(text, mapped, sizeof mapped - 1) == 0 && strchr(text, '.');
	snprintf(out, HTTP_SERVER_PEER_BYTES, "%s", is_mapped ? text + sizeof mapped - 1 : text);
}

static void take(struct http_server *s, evutil_socket_t fd, const struct sockaddr_storage *sa, socklen_t len)
{
	static const int on = 1, notsent = HTTP_SERVER_NOTSENT_BYTES;
	char peer[HTTP_SERVER_PEER_BYTES];
	s->stats.accepted++;
	format_peer((const struct sockaddr *)sa, len, peer);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // for speed only; failure is harmless
	// A client that does not read must not fill a send buffer of megabytes in the kernel, which our cgroup is
	// charged for.
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &notsent, sizeof notsent);
	http_conn_new(s, fd, peer);
}

// Returns whether accept reported an error of one connection, or none: the next accept may succeed (accept(2)).
static bool concerns_one_connection(int error)
{
	static const int errors[] = {EINTR,  ECONNABORTED, EPROTO,       EPERM,      ENETDOWN,   ENOPROTOOPT,
	                             ENONET, EHOSTDOWN,    EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH};
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
		if (errors[i] == error)
			return true;
	return false;
}

// Connections accepted in one turn of the loop: at most a quarter of the places of silent connections. The data of a
// connection is read in the turn after the one that accepts it, so before newer connections can evict it.
static int batch_of(const struct http_server *s)
{
	int quarter = s->max_silent / 4;
	return quarter > ACCEPT_BATCH_MAX ? ACCEPT_BATCH_MAX : quarter > 1 ? quarter : 1;
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval pause = {.tv_usec = ACCEPT_PAUSE_MS * 1000};
	struct http_server *s = arg;
	for (int i = 0, batch = batch_of(s); i < batch; i++) {
		struct sockaddr_storage sa;
		socklen_t len = sizeof sa;
		int accepted = accept4(fd, (struct sockaddr *)&sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (accepted >= 0) {
			take(s, accepted, &sa, len);
			continue;
		}
		if (errno == EAGAIN)
			return;
		// Otherwise the process is out of descriptors or memory. Without a connection to close, the socket
		// would stay readable and the loop would spin.
		if (concerns_one_connection(errno) || http_places_evict_any(s))
			continue;
		event_del(s->acceptable);
		evtimer_add(s->resume, &pause);
		return;
	}
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *s = arg;
	event_add(s->acceptable, NULL);
}

int http_accept_start(struct http_server *s, struct err *e)
{
	s->resume = evtimer_new(s->loop, on_resume, s);
	s->acceptable = event_new(s->loop, s->listen_fd, EV_READ | EV_PERSIST, on_acceptable, s);
	if (!s->resume || !s->acceptable || event_add(s->acceptable, NULL) < 0)
		return err_set(e, ERR_INTERNAL, "http server: out of memory");
	return 0;
}

void http_accept_stop(struct http_server *s)
{
	if (s->acceptable)
		event_free(s->acceptable);
	if (s->resume)
		event_free(s->resume);
	if (s->listen_fd >= 0)
		close(s->listen_fd);
}
