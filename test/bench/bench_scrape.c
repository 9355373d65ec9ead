// SPDX-License-Identifier: Apache-2.0
// The barest HTTP client there is, so that what is measured is the server: GETs one page COUNT times over one
// connection. Prints "us=N us_min=N us_max=N bytes=N": the time from request to last byte (us is the median), and the
// length of a reply.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/num.h"

#define COUNT_MAX       100000
#define REPLY_BYTES_MAX (16 * 1024 * 1024)
#define TIMEOUT_S       60

static double now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int connect_to(int64_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	struct timeval limit = {.tv_sec = TIMEOUT_S};
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0) {
		perror("bench_scrape: connect");
		exit(1);
	}
	return fd;
}

static int give_up(const char *why)
{
	fprintf(stderr, "bench_scrape: %s\n", why);
	exit(1);
}

// Length of the whole reply once it is known, else 0. In chunks it is known at the last one; a page of metrics holds
// no carriage return, so the mark of that one is not found earlier.
static size_t length_of(const char *reply, size_t len)
{
	const char *end = strstr(reply, "\r\n\r\n");
	if (!end)
		return 0;
	if (strncmp(reply, "HTTP/1.1 200", 12) != 0)
		give_up("the reply is not 200");
	static const char name[] = "\r\nContent-Length: ", last[] = "\r\n0\r\n\r\n";
	const char *chunked = strcasestr(reply, "\r\nTransfer-Encoding: chunked\r\n");
	if (chunked && chunked < end)
		return len > sizeof last && strcmp(reply + len - (sizeof last - 1), last) == 0 ? len : 0;
	const char *header = strcasestr(reply, name);
	if (!header || header > end)
		give_up("the reply has no Content-Length");
	const char *value = header + sizeof name - 1;
	int64_t body;
	struct err e;
	if (num_parse_i64(value, strcspn(value, "\r"), 0, REPLY_BYTES_MAX, &body, &e) < 0)
		give_up(e.msg);
	return (size_t)(end - reply) + 4 + (size_t)body;
}

// Returns the bytes of the reply.
static size_t scrape(int fd, const char *request, char *reply, size_t size)
{
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
		give_up("cannot send");
	size_t len = 0, whole = 0;
	while (whole == 0 || len < whole) {
		if (len + 1 == size)
			give_up("the reply is too long");
		ssize_t n = recv(fd, reply + len, size - len - 1, 0);
		if (n <= 0)
			give_up(n == 0 ? "the server closed the connection" : "no reply in time");
		len += (size_t)n;
		reply[len] = '\0';
		if (whole == 0)
			whole = length_of(reply, len);
	}
	return len;
}

static int by_value(const void *a, const void *b)
{
	double x, y;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int64_t port, count;
	struct err e;
	if (argc != 4 || num_parse_i64(argv[1], strlen(argv[1]), 1, 65535, &port, &e) < 0 ||
	    num_parse_i64(argv[3], strlen(argv[3]), 1, COUNT_MAX, &count, &e) < 0) {
		fputs("usage: bench_scrape PORT PATH COUNT\n", stderr);
		return 2;
	}
	char request[1024];
	snprintf(request, sizeof request, "GET %.900s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", argv[2]);
	char *reply = malloc(REPLY_BYTES_MAX);
	double *us = calloc((size_t)count, sizeof *us);
	if (!reply || !us)
		give_up("out of memory");
	int fd = connect_to(port);
	size_t bytes = scrape(fd, request, reply, REPLY_BYTES_MAX); // the first one warms the connection up
	for (int64_t i = 0; i < count; i++) {
		double start_us = now_us();
		bytes = scrape(fd, request, reply, REPLY_BYTES_MAX);
		us[i] = now_us() - start_us;
	}
	qsort(us, (size_t)count, sizeof *us, by_value);
	printf("us=%.1f us_min=%.1f us_max=%.1f bytes=%zu\n", us[count / 2], us[0], us[count - 1], bytes);
	close(fd);
	free(us);
	free(reply);
	return 0;
}
