// SPDX-License-Identifier: Apache-2.0
// Sends any bytes to the HTTP server, in two pieces over a real connection whose client then sends no more. The server
// closes the connection by itself; every request that reaches a handler is complete, uses an accepted host name and
// does not come from another site; and the output is a sequence of replies. The first byte selects where the bytes are
// cut, and how many silent connections arrive at that moment, for which the server has few places.
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/http/http_server.h"
#include "base/http/http_site.h"
#include "base/http/http_text.h"
#include "test/support/http_request.h"
#include "test/support/http_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX  16384
#define BODY_MAX   4096
#define REPLY_MAX  ((size_t)512 * 1024)
#define TURNS_MAX  20000
#define HEADER_MAX 8192
#define SILENT_MAX 4

struct world {
	struct event_base *loop;
	struct http_server *server;
	struct http_site *site;
	int handled;
	int client;
	char *reply;
	size_t reply_len;
};

// Looks at all of the request, and sends its body back.
static void handle(void *arg, struct http_exchange *x)
{
	struct world *w = arg;
	const char *method = http_exchange_method(x), *path = http_exchange_path(x), *name, *value;
	size_t len, n = 0;
	const char *body = http_exchange_body(x, &len);
	w->handled++;
	const char *host = http_exchange_host(x);
	bool is_read = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "OPTIONS") == 0;
	assert(!host || http_site_has_host(w->site, host));
	assert(is_read || http_exchange_header(x, HTTP_SITE_HEADER));
	assert(http_is_token(method, strlen(method)) && (path[0] == '/' || strcmp(path, "*") == 0));
	assert(len <= BODY_MAX && body[len] == '\0');
	for (; http_exchange_header_at(x, n, &name, &value); n++) {
		assert(http_is_token(name, strlen(name)) && http_is_field_value(value, strlen(value)));
		assert(http_exchange_header(x, name));
	}
	const char *query = http_exchange_query(x, "policy"), *other = http_exchange_query(x, "");
	assert(!other && (!query || strlen(query) < INPUT_MAX));
	if (http_exchange_query_is_broken(x)) {
		http_exchange_reply_text(x, 400, "broken query");
		return;
	}
	if (query)
		http_exchange_set_header(x, "X-Policy", query);
	if (http_exchange_header(x, "X-Abort"))
		http_exchange_abort(x);
	else
		http_exchange_reply(x, 200, "application/octet-stream", body, len);
}

// A reply in pieces, ended at once.
static void handle_stream(void *arg, struct http_exchange *x)
{
	struct world *w = arg;
	w->handled++;
	if (!http_exchange_reply_start(x, 200, "text/plain", NULL, NULL))
		return;
	http_exchange_write(x, "one", 3);
	http_exchange_write(x, "", 0);
	http_exchange_write(x, "two", 3);
	http_exchange_end(x);
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(fd >= 0);
	assert(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
	return fd;
}

// Reads the available bytes. True: the server has closed the connection.
static bool take(struct world *w)
{
	for (;;) {
		ssize_t n = recv(w->client, w->reply + w->reply_len, REPLY_MAX - w->reply_len, MSG_DONTWAIT);
		if (n > 0) {
			w->reply_len += (size_t)n;
			assert(w->reply_len < REPLY_MAX);
			continue;
		}
		return n == 0 || errno != EAGAIN;
	}
}

// The server may have refused and reset it already.
static bool send_all(struct world *w, const uint8_t *data, size_t len)
{
	size_t sent = 0;
	bool is_over = false;
	for (int turn = 0; turn < TURNS_MAX && sent < len && !is_over; turn++) {
		ssize_t n = send(w->client, data + sent, len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0)
			sent += (size_t)n;
		else if (errno != EAGAIN)
			return false;
		event_base_loop(w->loop, EVLOOP_NONBLOCK);
		is_over = take(w);
	}
	return !is_over;
}

static void wait_for_end(struct world *w)
{
	struct http_server_stats s;
	int turn = 0;
	bool is_over = false;
	for (; turn < TURNS_MAX; turn++) {
		event_base_loop(w->loop, EVLOOP_NONBLOCK);
		is_over = is_over || take(w);
		http_server_get_stats(w->server, &s);
		if (is_over && s.open == 0)
			return;
		if (turn > 10) {
			struct pollfd p = {.fd = w->client, .events = POLLIN};
			poll(&p, 1, 1);
		}
	}
	abort(); // it hangs on to a client that sends no more
}

// The first reply; of those that follow nothing is known without reading bodies.
static void check_reply(const struct world *w)
{
	if (w->reply_len == 0)
		return;
	assert(w->reply_len >= 15 && memcmp(w->reply, "HTTP/1.1 ", 9) == 0);
	int status = (w->reply[9] - '0') * 100 + (w->reply[10] - '0') * 10 + (w->reply[11] - '0');
	assert(status >= 100 && status <= 599);
	assert(memmem(w->reply, w->reply_len, "\r\n\r\n", 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = {.client = -1};
	struct err e;
	if (size < 1 || size > INPUT_MAX)
		return 0;
	size_t len = size - 1, cut = len * data[0] / 255;
	w.loop = event_base_new();
	w.reply = malloc(REPLY_MAX);
	assert(w.loop && w.reply);
	w.site = http_site_new("test,*.svc", &e);
	assert(w.site);
	w.server = http_server_new(&(struct http_server_options){.loop = w.loop,
	                                                         .listen = "127.0.0.1:0",
	                                                         .max_body_bytes = BODY_MAX,
	                                                         .max_header_bytes = HEADER_MAX,
	                                                         .max_silent = SILENT_MAX,
	                                                         .max_connections = 1,
	                                                         .site = w.site},
	                           &e);
	assert(w.server);
	assert(http_server_route(w.server, "/", handle, &w, &e) == 0);
	assert(http_server_route(w.server, "/stream", handle_stream, &w, &e) == 0);
	w.client = connect_to(http_server_port(w.server));
	event_base_loop(w.loop, EVLOOP_NONBLOCK);
	int silent[SILENT_MAX + 1], n_silent = data[0] % (SILENT_MAX + 2);
	bool is_open = send_all(&w, data + 1, cut);
	for (int i = 0; i < n_silent; i++) {
		silent[i] = connect_to(http_server_port(w.server));
		event_base_loop(w.loop, EVLOOP_NONBLOCK);
	}
	if (is_open)
		send_all(&w, data + 1 + cut, len - cut);
	shutdown(w.client, SHUT_WR);
	struct http_server_stats s;
	http_server_get_stats(w.server, &s);
	assert(s.open <= SILENT_MAX + 1);
	struct linger at_once = {.l_onoff = 1}; // thousands of connections a second would use up the ports
	for (int i = 0; i < n_silent; i++) {
		setsockopt(silent[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(silent[i]);
	}
	wait_for_end(&w);
	check_reply(&w);
	setsockopt(w.client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(w.client);
	http_server_free(w.server);
	free(w.site);
	event_base_free(w.loop);
	free(w.reply);
	return 0;
}
