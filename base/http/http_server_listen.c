// SPDX-License-Identifier: Apache-2.0
// Listen addresses of the HTTP server: parsing, binding, accepting.
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http/http_server_internal.h"

#define LISTEN_BACKLOG 4096 // the kernel's own ceiling (net.core.somaxconn); clients above it retransmit

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

int http_server_listen(const char *address, int receive_bytes, uint16_t *ret_port, struct err *e)
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
		return http_server_listen(v4, receive_bytes, ret_port, e);
	}
	if (fd < 0)
		return err_set_code(e, ERR_IO, saved, "cannot listen on \"%.100s\": %s", address,
		                    saved == EADDRINUSE ? "port in use by another process; choose a different port"
		                    : saved == EACCES   ? "not allowed; ports below 1024 need privileges"
		                                        : strerror(saved));
	*ret_port = port_of(fd);
	return fd;
}
