// SPDX-License-Identifier: Apache-2.0
#include "exporter/http_call.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/http.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <strings.h>

#include "base/base.h"
#include "base/file_open.h"

struct http_call {
	struct event_base *loop;
	struct evdns_base *dns;
	struct evhttp_uri *uri;
	SSL_CTX *tls; // NULL: plain HTTP
	char host[256];
	char host_header[300];
	uint16_t port;
	char target[4200];
	struct timeval timeout;
	http_call_done_fn *done;
	http_call_data_fn *data; // NULL: bodies are kept until `done`
	void *arg;
	const char *accept;
	size_t body_bytes_max;

	// The request in flight. Its completion goes through `end`, which is activated by the callbacks or by the
	// deadline, because libevent does not allow a connection to be freed in its own callbacks.
	struct evhttp_connection *connection;
	struct bufferevent *bev; // buffer of the connection
	struct event *end;
	bool completed; // `body` or `error` has the outcome
	int status;
	struct buf body;
	struct err error; // ERR_NONE: there is a reply
};

static void drop_connection(struct http_call *f)
{
	evhttp_connection_free(f->connection);
	f->connection = NULL;
	f->bev = NULL;
}

static void finish(struct http_call *f)
{
	f->completed = true;
	event_active(f->end, EV_TIMEOUT, 0);
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
	struct http_call *f = arg;
	event_del(f->end);
	bool completed = f->completed;
	f->completed = true; // callbacks from freeing the connection are ignored
	drop_connection(f);
	if (!completed)
		err_set(&f->error, ERR_TIMEOUT, "no reply within %lld.%03ld s", (long long)f->timeout.tv_sec,
		        (long)f->timeout.tv_usec / 1000);
	if (f->error.kind != ERR_NONE)
		f->done(f->arg, 0, NULL, 0, &f->error);
	else
		f->done(f->arg, f->status, buf_str(&f->body), f->body.len, NULL);
}

// libevent has already closed the socket that failed to connect, so that errno is only ENOTCONN.
static const char *why_unreachable(struct http_call *f)
{
	int code = EVUTIL_SOCKET_ERROR(), dns = bufferevent_socket_get_dns_error(f->bev);
	if (dns)
		return evutil_gai_strerror(dns);
	return code == ENOTCONN ? "no connection; is the server running and listening at this address?"
	                        : evutil_socket_error_to_string(code);
}

// Records what failed below HTTP.
static void explain_break(struct http_call *f)
{
	SSL *ssl = f->tls ? bufferevent_openssl_get_ssl(f->bev) : NULL;
	long verdict = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
	// NULL if the error does not come from OpenSSL: libevent also stores SSL_ERROR_SYSCALL there.
	const char *reason = f->tls ? ERR_reason_error_string(bufferevent_get_openssl_error(f->bev)) : NULL;
	if (verdict != X509_V_OK)
		err_set(&f->error, ERR_TLS, "the certificate of %s is not accepted: %s", f->host_header,
		        X509_verify_cert_error_string(verdict));
	else if (reason)
		err_set(&f->error, ERR_TLS, "TLS with %s: %s", f->host_header, reason);
	else
		err_set(&f->error, ERR_UNREACHABLE, "cannot reach %s: %s", f->host_header, why_unreachable(f));
}

static void explain_too_long(struct http_call *f)
{
	err_set(&f->error, ERR_LIMIT, "the reply of %s exceeds the ceiling of %zu bytes", f->host_header,
	        f->body_bytes_max);
}

static void on_error(enum evhttp_request_error what, void *arg)
{
	struct http_call *f = arg;
	if (f->completed)
		return;
	if (what == EVREQ_HTTP_DATA_TOO_LONG)
		explain_too_long(f);
	else if (what == EVREQ_HTTP_INVALID_HEADER)
		err_set(&f->error, ERR_PROTOCOL, "the reply of %s is not HTTP", f->host_header);
	else
		explain_break(f);
	finish(f);
}

static void on_reply(struct evhttp_request *request, void *arg)
{
	struct http_call *f = arg;
	if (f->completed)
		return;
	if (!request || evhttp_request_get_response_code(request) == 0) {
		explain_break(f);
	} else {
		f->status = evhttp_request_get_response_code(request);
	}
	finish(f);
}

// libevent empties the buffer after each call.
static void on_piece(struct evhttp_request *request, void *arg)
{
	struct http_call *f = arg;
	struct evbuffer *in = evhttp_request_get_input_buffer(request);
	bool streams = f->data && evhttp_request_get_response_code(request) == 200;
	for (size_t n; !f->completed && (n = evbuffer_get_contiguous_space(in)) > 0; evbuffer_drain(in, n)) {
		const unsigned char *piece = evbuffer_pullup(in, (ev_ssize_t)n);
		if (streams && f->data(f->arg, (const char *)piece, n, &f->error) < 0) {
			finish(f);
		} else if (!streams && buf_put(&f->body, piece, n) < 0) {
			explain_too_long(f);
			finish(f);
		}
	}
}

static int parse_url(struct http_call *f, const char *url, struct err *e)
{
	f->uri = evhttp_uri_parse(url);
	const char *scheme = f->uri ? evhttp_uri_get_scheme(f->uri) : NULL;
	const char *host = f->uri ? evhttp_uri_get_host(f->uri) : NULL;
	bool https = scheme && strcasecmp(scheme, "https") == 0;
	if (!host || !host[0] || (!https && (!scheme || strcasecmp(scheme, "http") != 0)))
		return err_set(e, ERR_INPUT, "\"%s\" is not an http or https URL", url);
	if (evhttp_uri_get_userinfo(f->uri))
		return err_set(e, ERR_INPUT, "the URL contains credentials: use tokenFile");
	int port = evhttp_uri_get_port(f->uri);
	f->port = (uint16_t)(port > 0 ? port : https ? 443 : 80);
	const char *path = evhttp_uri_get_path(f->uri), *query = evhttp_uri_get_query(f->uri);
	// In a URL, ::1 is written as "[::1]".
	size_t len = strlen(host);
	bool v6 = host[0] == '[' && host[len - 1] == ']';
	int n = snprintf(f->host, sizeof f->host, "%.*s", v6 ? (int)len - 2 : (int)len, v6 ? host + 1 : host);
	int m = snprintf(f->target, sizeof f->target, "%s%s%s", path && path[0] ? path : "/", query ? "?" : "",
	                 query ? query : "");
	if (n < 0 || (size_t)n >= sizeof f->host || m < 0 || (size_t)m >= sizeof f->target)
		return err_set(e, ERR_LIMIT, "the URL is too long: %zu bytes", strlen(url));
	snprintf(f->host_header, sizeof f->host_header, "%s:%u", host, f->port);
	return https ? 1 : 0;
}

static int make_tls(struct http_call *f, const char *ca_file, struct err *e)
{
	if (ca_file && file_check_regular(ca_file, e) < 0)
		return -1;
	f->tls = SSL_CTX_new(TLS_client_method());
	if (!f->tls)
		return err_no_memory(e);
	SSL_CTX_set_min_proto_version(f->tls, TLS1_2_VERSION);
	SSL_CTX_set_verify(f->tls, SSL_VERIFY_PEER, NULL);
	int ok = ca_file ? SSL_CTX_load_verify_file(f->tls, ca_file) : SSL_CTX_set_default_verify_paths(f->tls);
	ERR_clear_error();
	if (!ok)
		return err_set(e, ERR_TLS, "cannot read certificates from %s", ca_file ? ca_file : "the system");
	return 0;
}

struct http_call *http_call_new(struct event_base *loop, const char *url, const char *ca_file, int64_t timeout_ms,
                                http_call_done_fn *done, void *arg, struct err *e)
{
	struct http_call *f = err_calloc(sizeof *f, e);
	if (!f)
		return NULL;
	f->loop = loop;
	f->done = done;
	f->arg = arg;
	f->accept = "application/json";
	f->body_bytes_max = HTTP_CALL_BODY_BYTES_MAX;
	f->timeout = (struct timeval){.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	buf_init(&f->body, HTTP_CALL_BODY_BYTES_MAX);
	int https = parse_url(f, url, e);
	bool ok = https == 0 || (https > 0 && make_tls(f, ca_file, e) == 0);
	// Resolves names without blocking. Creation fails without a resolv.conf; numeric addresses still work.
	f->dns = evdns_base_new(loop, EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	f->end = event_new(loop, -1, 0, on_end, f);
	if (ok && f->end)
		return f;
	if (ok)
		err_no_memory(e);
	http_call_free(f);
	return NULL;
}

void http_call_free(struct http_call *f)
{
	if (!f)
		return;
	if (f->connection) {
		f->completed = true; // its callbacks are ignored
		evhttp_connection_free(f->connection);
	}
	if (f->end)
		event_free(f->end);
	if (f->dns)
		evdns_base_free(f->dns, 0);
	if (f->uri)
		evhttp_uri_free(f->uri);
	SSL_CTX_free(f->tls);
	buf_done(&f->body);
	free(f);
}

void http_call_stream(struct http_call *f, const char *accept, size_t body_bytes_max, http_call_data_fn *data)
{
	f->accept = accept;
	f->body_bytes_max = body_bytes_max;
	f->data = data;
}

bool http_call_is_busy(const struct http_call *f)
{
	return f->connection != NULL;
}

static struct bufferevent *make_bev(struct http_call *f, struct err *e)
{
	if (!f->tls) {
		struct bufferevent *plain = bufferevent_socket_new(f->loop, -1, BEV_OPT_CLOSE_ON_FREE);
		if (!plain)
			err_no_memory(e);
		return plain;
	}
	SSL *ssl = SSL_new(f->tls);
	struct in6_addr address;
	bool numeric = inet_pton(AF_INET, f->host, &address) == 1 || inet_pton(AF_INET6, f->host, &address) == 1;
	bool ok = ssl != NULL;
	if (ok && numeric)
		ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), f->host) == 1;
	else if (ok)
		ok = SSL_set1_host(ssl, f->host) == 1 && SSL_set_tlsext_host_name(ssl, f->host) == 1;
	// `ssl` now belongs to the bufferevent.
	struct bufferevent *bev =
	        ok ? bufferevent_openssl_socket_new(f->loop, -1, ssl, BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE)
	           : NULL;
	if (!bev) {
		SSL_free(ssl);
		err_set(e, ERR_INTERNAL, "cannot make a TLS connection");
		return NULL;
	}
	// Many servers close without close_notify; the length of the body shows whether it is complete.
	bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev;
}

static int add_headers(struct http_call *f, struct evhttp_request *request, const char *bearer_token)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	int rc = evhttp_add_header(headers, "Host", f->host_header);
	rc |= evhttp_add_header(headers, "Connection", "close");
	rc |= evhttp_add_header(headers, "Accept", f->accept);
	rc |= evhttp_add_header(headers, "User-Agent", "gpuscale-exporter/" GPUSCALE_VERSION);
	if (bearer_token) {
		struct buf value;
		buf_init(&value, 128 * 1024);
		buf_puts(&value, "Bearer ");
		buf_puts(&value, bearer_token);
		rc |= value.failed ? -1 : evhttp_add_header(headers, "Authorization", buf_str(&value));
		buf_done(&value);
	}
	return rc;
}

static int add_body(struct evhttp_request *request, const char *content_type, const char *body, size_t len)
{
	return evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", content_type) |
	       evbuffer_add_reference(evhttp_request_get_output_buffer(request), body, len, NULL, NULL);
}

// A GET with `bearer_token` (may be NULL) if `content_type` is NULL, else a POST of body[0..len).
static int start(struct http_call *f, const char *bearer_token, const char *content_type, const char *body, size_t len,
                 struct err *e)
{
	if (f->connection)
		return err_set(e, ERR_INTERNAL, "a request is already in flight");
	f->completed = false;
	f->status = 0;
	buf_reset(&f->body);
	err_clear(&f->error);
	f->bev = make_bev(f, e);
	if (!f->bev)
		return -1;
	f->connection = evhttp_connection_base_bufferevent_new(f->loop, f->dns, f->bev, f->host, f->port);
	if (!f->connection) {
		bufferevent_free(f->bev);
		return err_no_memory(e);
	}
	evhttp_connection_set_max_body_size(f->connection, (ev_ssize_t)f->body_bytes_max);
	evhttp_connection_set_max_headers_size(f->connection, HTTP_CALL_HEADER_BYTES_MAX);
	struct evhttp_request *request = evhttp_request_new(on_reply, f);
	if (request) {
		evhttp_request_set_error_cb(request, on_error);
		evhttp_request_set_chunked_cb(request, on_piece);
	}
	if (!request || add_headers(f, request, bearer_token) != 0 ||
	    (content_type && add_body(request, content_type, body, len) != 0)) {
		if (request)
			evhttp_request_free(request);
		drop_connection(f);
		return err_set(e, ERR_INPUT, "cannot make the request: is the token one line of text?");
	}
	// The request now belongs to the connection, even if this call fails.
	if (evhttp_make_request(f->connection, request, content_type ? EVHTTP_REQ_POST : EVHTTP_REQ_GET, f->target) !=
	            0 &&
	    !f->completed) {
		drop_connection(f);
		return err_set(e, ERR_UNREACHABLE, "cannot connect to %s", f->host_header);
	}
	// The callback is called from the loop, even if the request has failed already.
	if (!f->completed && event_add(f->end, &f->timeout) < 0) {
		drop_connection(f);
		return err_set(e, ERR_INTERNAL, "cannot create a timer");
	}
	return 0;
}

int http_call_start(struct http_call *f, const char *bearer_token, struct err *e)
{
	return start(f, bearer_token, NULL, NULL, 0, e);
}

int http_call_post(struct http_call *f, const char *content_type, const char *body, size_t len, struct err *e)
{
	return start(f, NULL, content_type, body, len, e);
}
