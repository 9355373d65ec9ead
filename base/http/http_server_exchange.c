// SPDX-License-Identifier: Apache-2.0
// One request and its reply: what handlers see, and how the answer is framed.
#include <event2/buffer.h>

#include "base/base.h"
#include "base/http/http_server_internal.h"
#include "base/http/http_site.h"
#include "base/http/http_text.h"
#include "base/timer.h"

struct http_exchange *http_exchange_new(struct http_conn *conn, size_t head_len)
{
	struct http_exchange *x = calloc(1, sizeof *x);
	char *text = malloc(head_len + 1);
	if (!x || !text) {
		free(x);
		free(text);
		return NULL;
	}
	x->server = conn->server;
	x->conn = conn;
	x->head_text = text;
	buf_init(&x->body, conn->server->max_body_bytes);
	buf_init(&x->reply_headers, HTTP_SERVER_REPLY_HEADERS_MAX);
	memcpy(x->peer, conn->peer->name, sizeof x->peer);
	LIST_INSERT_HEAD(&conn->server->exchanges, x, link);
	return x;
}

void http_exchange_free(struct http_exchange *x)
{
	LIST_REMOVE(x, link);
	if (x->conn)
		x->conn->x = NULL;
	buf_done(&x->body);
	buf_done(&x->reply_headers);
	free(x->query_text);
	free(x->head_text);
	free(x);
}

// ---- routes ----

static int add_route(struct http_server *s, const char *path, const struct http_route *route, struct err *e)
{
	if (path[0] != '/')
		return err_set(e, ERR_USAGE, "http server: the route \"%.100s\" must begin with '/'", path);
	if (s->n_routes == HTTP_SERVER_ROUTES_MAX)
		return err_set(e, ERR_LIMIT, "http server: more than %d routes", HTTP_SERVER_ROUTES_MAX);
	for (size_t i = 0; i < s->n_routes; i++) {
		if (strcmp(s->routes[i].path, path) == 0)
			return err_set(e, ERR_USAGE, "http server: the route \"%.100s\" is given twice", path);
	}
	char *copy = strdup(path);
	if (!copy)
		return err_set(e, ERR_INTERNAL, "http server: out of memory");
	s->routes[s->n_routes] = *route;
	s->routes[s->n_routes].path = copy;
	s->routes[s->n_routes++].len = strlen(copy);
	return 0;
}

int http_server_route(struct http_server *s, const char *path, http_handler_fn *fn, void *arg, struct err *e)
{
	return add_route(s, path, &(struct http_route){.fn = fn, .arg = arg}, e);
}

int http_server_route_long(struct http_server *s, const char *path, http_handler_fn *fn, void *arg, struct err *e)
{
	return add_route(s, path, &(struct http_route){.fn = fn, .arg = arg, .is_long = true}, e);
}

void http_server_set_admission(struct http_server *s, http_admit_fn *fn, void *arg)
{
	s->admit = fn;
	s->admit_arg = arg;
}

static const struct http_route *find_route(const struct http_server *s, const char *path)
{
	const struct http_route *best = NULL;
	for (size_t i = 0; i < s->n_routes; i++) {
		const struct http_route *r = &s->routes[i];
		bool is_prefix = r->path[r->len - 1] == '/';
		bool matches = is_prefix ? strncmp(path, r->path, r->len) == 0 : strcmp(path, r->path) == 0;
		// A whole match is longer than any prefix but the same path, which cannot be there twice.
		if (matches && (!best || r->len > best->len))
			best = r;
	}
	return best;
}

// Checks the request against the site's rules for browsers. Returns false after it has refused the request and freed x.
static bool admit_site(struct http_exchange *x)
{
	char why[384];
	int status = http_site_classify(x->server->site, x->head.method, x->head.host,
	                                http_exchange_header(x, "Origin"), http_exchange_header(x, "Sec-Fetch-Site"),
	                                http_exchange_header(x, HTTP_SITE_HEADER), why, sizeof why);
	if (status)
		http_exchange_reply_text(x, status, why);
	return status == 0;
}

static void run_long(struct http_exchange *x)
{
	timer_start(&x->server->long_turn, 0);
	x->route->fn(x->route->arg, x);
}

void http_exchange_dispatch_waiting(evutil_socket_t fd, short what, void *server)
{
	struct http_server *s = server;
	struct http_exchange *x = TAILQ_FIRST(&s->waiting);
	if (!x)
		return;
	TAILQ_REMOVE(&s->waiting, x, in_waiting);
	run_long(x);
}

void http_exchange_dispatch(struct http_exchange *x)
{
	struct http_server *s = x->server;
	const struct http_route *route = find_route(s, x->head.path);
	x->route = route;
	s->stats.requests++;
	s->in_handler++;
	if (s->site && !admit_site(x))
		; // it has replied
	else if (s->admit && !s->admit(s->admit_arg, x))
		; // it has replied
	else if (!route)
		http_exchange_reply_text(x, 404, "not found");
	else if (!route->is_long)
		route->fn(route->arg, x); // x may be gone now
	else if (evtimer_pending(&s->long_turn, NULL))
		TAILQ_INSERT_TAIL(&s->waiting, x, in_waiting);
	else
		run_long(x);
	s->in_handler--;
}

// ---- the request ----

const char *http_exchange_method(const struct http_exchange *x)
{
	return x->head.method;
}

const char *http_exchange_path(const struct http_exchange *x)
{
	return x->head.path;
}

const char *http_exchange_header(const struct http_exchange *x, const char *name)
{
	return http_head_field(&x->head, name);
}

bool http_exchange_header_at(const struct http_exchange *x, size_t i, const char **ret_name, const char **ret_value)
{
	if (i >= x->head.n_fields)
		return false;
	*ret_name = x->head.fields[i].name;
	*ret_value = x->head.fields[i].value;
	return true;
}

const char *http_exchange_peer(const struct http_exchange *x)
{
	return x->peer;
}

// Pairs past HTTP_SERVER_QUERY_MAX and pairs with broken escapes are passed over: to a handler they are not there.
static void parse_query(struct http_exchange *x)
{
	if (!x->head.query)
		return;
	if (!(x->query_text = strdup(x->head.query))) {
		x->query_broken = true;
		return;
	}
	char *rest = x->query_text;
	while (rest && x->n_query < HTTP_SERVER_QUERY_MAX) {
		char *name = rest, *end = strchr(rest, '&');
		rest = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		char *value = strchr(name, '=');
		if (value)
			*value++ = '\0';
		else
			value = name + strlen(name);
		if (http_percent_decode(value, strlen(value), true) < 0 ||
		    http_percent_decode(name, strlen(name), true) <= 0) {
			x->query_broken = x->query_broken || *name || *value;
			continue;
		}
		x->query[x->n_query++] = (struct http_field){.name = name, .value = value};
	}
	x->query_broken = x->query_broken || rest;
}

const char *http_exchange_query(struct http_exchange *x, const char *name)
{
	if (!x->query_text)
		parse_query(x);
	for (size_t i = 0; i < x->n_query; i++) {
		if (strcmp(x->query[i].name, name) == 0)
			return x->query[i].value;
	}
	return NULL;
}

bool http_exchange_query_is_broken(struct http_exchange *x)
{
	if (!x->query_text)
		parse_query(x);
	return x->query_broken;
}

// ---- the reply ----

void http_exchange_set_header(struct http_exchange *x, const char *name, const char *value)
{
	assert(http_is_token(name, strlen(name)));
	struct buf *h = &x->reply_headers;
	buf_printf(h, "%s: ", name);
	for (const char *p = value; *p; p++)
		buf_putc(h, http_is_field_value(p, 1) ? *p : ' ');
	buf_puts(h, "\r\n");
}

static bool has_reply_header(const struct http_exchange *x, const char *name)
{
	size_t len = strlen(name);
	for (const char *line = buf_str(&x->reply_headers); *line; line = strchr(line, '\n') + 1)
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			return true;
	return false;
}

// Headers that keep browsers from using a reply for another site or with another content type. The reply's own headers
// take precedence.
static void add_site_headers(struct http_exchange *x)
{
	static const char *const headers[][2] = {
	        {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
	        {"Cross-Origin-Resource-Policy", "same-origin"},
	        {"Referrer-Policy", "no-referrer"},
	        {"X-Content-Type-Options", "nosniff"},
	};
	for (size_t i = 0; x->server->site && i < sizeof headers / sizeof headers[0]; i++)
		if (!x->reply_headers.failed && !has_reply_header(x, headers[i][0]))
			http_exchange_set_header(x, headers[i][0], headers[i][1]);
}

struct http_body {
	const char *data;
	size_t len;
	http_release_fn *release; // NULL: `data` is valid during the call only
	void *arg;
};

void http_conn_put_head(struct http_conn *conn, int status, const char *content_type, const char *headers,
                        const char *framing)
{
	struct evbuffer *out = bufferevent_get_output(conn->bev);
	char date[64];
	evutil_date_rfc1123(date, sizeof date, NULL);
	evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n%s", status, http_status_phrase(status), date, headers);
	if (content_type)
		evbuffer_add_printf(out, "Content-Type: %s\r\n", content_type);
	evbuffer_add_printf(out, "%sConnection: %s\r\n\r\n", framing, conn->close_after ? "close" : "keep-alive");
}

static void free_copy(const void *data, size_t len, void *copy)
{
	free(copy);
}

static void release_body(const struct http_body *body)
{
	if (body->release)
		body->release(body->data, body->len, body->arg);
}

// libevent rounds its own blocks up to the next power of two.
static int put_body(struct evbuffer *out, const struct http_body *body)
{
	struct http_body b = *body;
	if (b.len <= HTTP_SERVER_REFERENCE_BYTES) {
		int rc = evbuffer_add(out, b.data, b.len);
		release_body(&b);
		return rc;
	}
	if (!b.release) {
		char *copy = malloc(b.len);
		if (!copy)
			return -1;
		memcpy(copy, b.data, b.len);
		b = (struct http_body){copy, b.len, free_copy, copy};
	}
	if (evbuffer_add_reference(out, b.data, b.len, b.release, b.arg) == 0)
		return 0;
	release_body(&b);
	return -1;
}

// Sends a reply head with these values and the body, which it releases.
static void send_reply(struct http_conn *conn, int status, const char *content_type, const char *headers,
                       bool head_only, const struct http_body *body)
{
	size_t len = body->len;
	bool has_body = status != 204 && status != 304;
	char length[48];
	snprintf(length, sizeof length, "Content-Length: %zu\r\n", len);
	http_limit_admit_reply(conn, len);
	conn->server->on_event(conn, HTTP_EVENT_REPLY);
	http_conn_put_head(conn, status, has_body ? content_type : NULL, headers, has_body ? length : "");
	bool sends_body = has_body && !head_only && len;
	if (!sends_body)
		release_body(body);
	if (sends_body && put_body(bufferevent_get_output(conn->bev), body) < 0) {
		conn->server->on_event(conn,
		                       HTTP_EVENT_ABORT); // out of memory: the client sees a reply that is cut off
		return;
	}
	conn->reply_bytes = sends_body ? len : 0;
}

void http_conn_refuse(struct http_conn *conn, int status, const char *why)
{
	char text[128];
	int n = snprintf(text, sizeof text, "%s\n", why);
	conn->close_after = conn->linger = true;
	if (conn->x)
		http_exchange_free(conn->x);
	send_reply(conn, status, "text/plain; charset=utf-8", "", false,
	           &(struct http_body){.data = text, .len = n > 0 ? (size_t)n : 0});
}

static void reply(struct http_exchange *x, int status, const char *content_type, const struct http_body *body)
{
	static const char too_much[] = "the reply's headers are too large\n";
	assert(status >= 200 && status <= 599 && !x->stream_ops);
	// A browser stores the headers of a 304 over those of the reply it keeps (test/e2e/run-status-page).
	if (status != 304)
		add_site_headers(x);
	if (!x->conn || x->reply_headers.failed)
		release_body(body);
	if (x->conn && x->reply_headers.failed)
		send_reply(x->conn, 500, "text/plain; charset=utf-8", "", false,
		           &(struct http_body){.data = too_much, .len = sizeof too_much - 1});
	else if (x->conn)
		send_reply(x->conn, status, content_type, buf_str(&x->reply_headers),
		           strcmp(x->head.method, "HEAD") == 0, body);
	http_exchange_free(x);
}

void http_exchange_reply(struct http_exchange *x, int status, const char *content_type, const char *body, size_t len)
{
	reply(x, status, content_type, &(struct http_body){.data = body, .len = len});
}

void http_exchange_reply_lent(struct http_exchange *x, int status, const char *content_type, const char *body,
                              size_t len, http_release_fn *release, void *arg)
{
	reply(x, status, content_type, &(struct http_body){body, len, release, arg});
}

void http_exchange_reply_text(struct http_exchange *x, int status, const char *text)
{
	struct buf b;
	size_t len = strlen(text);
	buf_init(&b, len + 1);
	buf_puts(&b, text);
	if (len == 0 || text[len - 1] != '\n')
		buf_putc(&b, '\n');
	http_exchange_reply(x, b.failed ? 500 : status, "text/plain; charset=utf-8", buf_str(&b), b.len);
	buf_done(&b);
}
