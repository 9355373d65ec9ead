// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_server.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/http/http_server_internal.h"

#define ACCEPT_BATCH_MAX 64
#define ACCEPT_PAUSE_MS  100
#define LISTEN_BACKLOG   4096 // the kernel's own ceiling (net.core.somaxconn); clients above it retransmit

// ---- listening ----

// "host:port", "[v6]:port", ":port" -> host without brackets, port.
static int split_address(const char *address, char *host, size_t host_size, char *port, size_t port_size, struct err *e)
{
	const char *colon = strrchr(address, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	if (!colon || digits == 0 || digits >= port_size || colon[1 + digits] != '\0')
		return err_set(e, ERR_USAGE, "listen address \"%.100s\": wanted is host:port, [v6]:port or :port",
		               address);
	uint32_t value = 0;
	for (size_t i = 0; i < digits; i++)
		value = value * 10 + (uint32_t)(colon[1 + i] - '0');
	if (value > 65535)
		return err_set(e, ERR_USAGE, "listen address \"%.100s\": the port must be 0 to 65535", address);
	memcpy(port, colon + 1, digits + 1);
	const char *begin = address;
	size_t len = (size_t)(colon - address);
	if (len >= 2 && begin[0] == '[' && begin[len - 1] == ']')
		begin++, len -= 2;
	else if (memchr(begin, ':', len))
		return err_set(e, ERR_USAGE, "listen address \"%.100s\": an IPv6 address needs brackets: [::1]:9400",
		               address);
	if (len >= host_size)
		return err_set(e, ERR_LIMIT, "listen address: a host of %zu bytes, the ceiling is %zu", len,
		               host_size - 1);
	memcpy(host, begin, len);
	host[len] = '\0';
	return 0;
}

// A bound and listening socket, or -1 with errno.
static int try_listen(const struct addrinfo *ai, bool dual_stack, int receive_bytes)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	int on = 1, v6_only = !dual_stack;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes) == 0 &&
	    (ai->ai_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only) == 0) &&
	    bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
		return fd;
	int saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return 0;
	return ntohs(ss.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&ss)->sin6_port
	                                      : ((struct sockaddr_in *)&ss)->sin_port);
}

// Returns a listening, non-blocking socket, or -1 and *e.
static int open_socket(const char *address, int receive_bytes, uint16_t *ret_port, struct err *e)
{
	char host[256], port[8];
	if (split_address(address, host, sizeof host, port, sizeof port, e) < 0)
		return -1;
	bool any = host[0] == '\0';
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
	                         .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	                         .ai_family = any ? AF_INET6 : AF_UNSPEC};
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(any ? "::" : host, port, &hints, &list);
	if (rc != 0)
		return err_set(e, ERR_IO, "cannot listen on \"%.100s\": %s", address, gai_strerror(rc));
	int fd = -1;
	for (const struct addrinfo *ai = list; ai && fd < 0; ai = ai->ai_next)
		fd = try_listen(ai, any, receive_bytes);
	int saved = errno;
	freeaddrinfo(list);
	if (fd < 0 && any && (saved == EAFNOSUPPORT || saved == EADDRNOTAVAIL)) { // a machine without IPv6
		char v4[32];
		snprintf(v4, sizeof v4, "0.0.0.0:%s", port);
		return open_socket(v4, receive_bytes, ret_port, e);
	}
	if (fd < 0)
		return err_set_code(e, ERR_IO, saved, "cannot listen on \"%.100s\": %s", address,
		                    saved == EADDRINUSE ? "port in use by another process; choose a different port"
		                    : saved == EACCES   ? "not allowed; ports below 1024 need privileges"
		                                        : strerror(saved));
	*ret_port = port_of(fd);
	return fd;
}

// ---- accepting ----

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

// Connections accepted in one turn of the loop: at most a quarter of max_silent. The data of a
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
		if (concerns_one_connection(errno) || http_limit_evict_any(s))
			continue;
		event_del(&s->acceptable);
		evtimer_add(&s->resume, &pause);
		return;
	}
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *s = arg;
	event_add(&s->acceptable, NULL);
}

// Listens at `address` with sockets that have a receive buffer of receive_bytes, which the kernel does not enlarge,
// sets s->port, and starts to accept. Returns 0, or -1 and *e.
static int start_listening(struct http_server *s, const char *address, int receive_bytes, struct err *e)
{
	s->listen_fd = open_socket(address, receive_bytes, &s->port, e);
	if (s->listen_fd < 0)
		return -1;
	event_assign(&s->acceptable, s->loop, s->listen_fd, EV_READ | EV_PERSIST, on_acceptable, s);
	return event_add(&s->acceptable, NULL) < 0 ? err_set(e, ERR_INTERNAL, "http server: out of memory") : 0;
}

// ---- start and stop ----

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
	for (int i = 0; i < HTTP_RANK__COUNT; i++)
		TAILQ_INIT(&s->ranks.conns[i]);
	LIST_INIT(&s->exchanges);
	TAILQ_INIT(&s->waiting);
	evtimer_assign(&s->long_turn, s->loop, http_exchange_dispatch_waiting, s);
	TAILQ_INIT(&s->handshakes);
	evtimer_assign(&s->handshake_turn, s->loop, http_handshake_queue_start, s);
	evtimer_assign(&s->resume, s->loop, on_resume, s);
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
	if (http_server_tls_new(o, &s->tls, e) < 0 || start_listening(s, o->listen, receive_bytes(s), e) < 0) {
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
	if (s->listen_fd >= 0) {
		event_del(&s->acceptable);
		close(s->listen_fd);
	}
	event_del(&s->resume);
	struct http_conn *conn;
	for (int i = 0; i < HTTP_RANK__COUNT; i++)
		while ((conn = TAILQ_FIRST(&s->ranks.conns[i])))
			http_conn_event(conn, HTTP_EVENT_LOST);
	struct http_exchange *x;
	while ((x = LIST_FIRST(&s->exchanges)))
		http_exchange_free(x);
	for (size_t i = 0; i < s->n_routes; i++)
		free(s->routes[i].path);
	event_del(&s->long_turn);
	event_del(&s->handshake_turn);
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
