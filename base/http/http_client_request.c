// SPDX-License-Identifier: Apache-2.0
// From a request to a configured transfer handle: URL, headers, credentials, body.
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <strings.h>
#include <time.h>

#include "base/base.h"
#include "base/http/http_client_internal.h"
#include "base/http/http_text.h"

// ---- a request's checked copy ----

static int out_of_memory(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "http request: out of memory");
}

static int add_header(struct http_call *call, const char *line, struct err *e)
{
	struct curl_slist *list = curl_slist_append(call->headers, line);
	if (!list)
		return out_of_memory(e);
	call->headers = list;
	return 0;
}

__attribute__((format(printf, 1, 2))) static char *format_text(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : text;
}

// A copy of the part, "" when the URL has none. NULL when memory is exhausted.
static char *url_part(CURLU *url, CURLUPart part, unsigned flags)
{
	char *text = NULL;
	CURLUcode rc = curl_url_get(url, part, &text, flags);
	if (rc == CURLUE_OUT_OF_MEMORY)
		return NULL;
	char *copy = strdup(text ? text : "");
	if (text)
		explicit_bzero(text, strlen(text));
	curl_free(text);
	return copy;
}

static bool is_loopback(const char *host)
{
	return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0;
}

// Puts the name to verify into the URL and the real host into CONNECT_TO and the Host header: curl has no separate
// option for it.
static int replace_server_name(struct http_call *call, CURLU *url, const char *name, const char *host, const char *port,
                               struct err *e)
{
	bool bare_v6 = strchr(name, ':') && name[0] != '[';
	char *bracketed = format_text("%s%s%s", bare_v6 ? "[" : "", name, bare_v6 ? "]" : "");
	char *target = format_text("::%s:%s", host, port);
	char *host_line = format_text("Host: %s:%s", host, port);
	int rc = bracketed && target && host_line ? 0 : out_of_memory(e);
	if (rc == 0 && curl_url_set(url, CURLUPART_HOST, bracketed, 0) != CURLUE_OK)
		rc = err_set(e, ERR_USAGE, "the TLS server name \"%.100s\" is not a host name", name);
	if (rc == 0 && !(call->connect_to = curl_slist_append(NULL, target)))
		rc = out_of_memory(e);
	if (rc == 0)
		rc = add_header(call, host_line, e);
	free(bracketed);
	free(target);
	free(host_line);
	return rc;
}

// Checks and takes the URL apart: call->url without credentials, call->place, call->host. *ret_user and
// *ret_password (to be freed) are what the URL carried, "" if nothing.
static int fill_url(struct http_call *call, const struct http_request *r, char **ret_user, char **ret_password,
                    struct err *e)
{
	if (strlen(r->url) > HTTP_URL_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "%s request: a URL of %zu bytes, the ceiling is %d", call->method,
		               strlen(r->url), HTTP_URL_BYTES_MAX);
	CURLU *url = curl_url();
	if (!url)
		return out_of_memory(e);
	// Not echoed on failure: it may contain credentials in an unexpected place.
	CURLUcode code = curl_url_set(url, CURLUPART_URL, r->url, CURLU_NON_SUPPORT_SCHEME);
	if (code != CURLUE_OK) {
		curl_url_cleanup(url);
		return err_set(
		        e, ERR_USAGE,
		        "%s request: unusable URL (%s); it must read http://host:port/path or https://host:port/path",
		        call->method, code == CURLUE_BAD_SCHEME ? "no scheme" : curl_url_strerror(code));
	}
	char *scheme = url_part(url, CURLUPART_SCHEME, 0), *host = url_part(url, CURLUPART_HOST, 0);
	char *port = url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT), *path = url_part(url, CURLUPART_PATH, 0);
	*ret_user = url_part(url, CURLUPART_USER, CURLU_URLDECODE);
	*ret_password = url_part(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
	int rc = 0;
	if (!scheme || !host || !port || !path || !*ret_user || !*ret_password) {
		rc = out_of_memory(e);
	} else {
		call->https = strcmp(scheme, "https") == 0;
		if (!call->https && strcmp(scheme, "http") != 0)
			rc = err_set(e, ERR_USAGE,
			             "%s request: scheme \"%.20s\" is not supported, only http and https are",
			             call->method, scheme);
		else if (host[0] == '\0')
			rc = err_set(e, ERR_USAGE, "%s request: the URL names no host", call->method);
	}
	if (rc == 0) {
		call->loopback = is_loopback(host) || r->no_proxy;
		snprintf(call->host, sizeof call->host, "%s", host);
		snprintf(call->place, sizeof call->place, "%s %s://%s:%s%s", call->method, scheme, host, port, path);
		curl_url_set(url, CURLUPART_USER, NULL, 0);
		curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
		curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
		if (call->https && r->tls && r->tls->server_name && r->tls->server_name[0])
			rc = replace_server_name(call, url, r->tls->server_name, host, port, e);
	}
	if (rc == 0) {
		call->url = url_part(url, CURLUPART_URL, 0);
		if (!call->url)
			rc = out_of_memory(e);
	}
	free(scheme);
	free(host);
	free(port);
	free(path);
	curl_url_cleanup(url);
	return rc;
}

// Adds a line, NULL when memory is exhausted, and wipes and frees it.
static int add_secret_header(struct http_call *call, char *line, struct err *e)
{
	int rc = line ? add_header(call, line, e) : out_of_memory(e);
	alloc_wipe(line);
	return rc;
}

static int add_bearer(struct http_call *call, const char *token, struct err *e)
{
	size_t len = strlen(token);
	for (size_t i = 0; i < len; i++) {
		if (!http_is_credential(token + i, 1))
			return err_set(e, ERR_USAGE,
			               "%s: the bearer token has a blank, line break or other forbidden byte at "
			               "position %zu of %zu; "
			               "was its file read whole?",
			               call->place, i + 1, len);
	}
	if (len == 0 || len > HTTP_HEADER_LINE_BYTES_MAX)
		return err_set(e, len ? ERR_LIMIT : ERR_USAGE, "%s: a bearer token of %zu bytes, wanted are 1 to %d",
		               call->place, len, HTTP_HEADER_LINE_BYTES_MAX);
	return add_secret_header(call, format_text("Authorization: Bearer %s", token), e);
}

static int add_basic(struct http_call *call, const char *user, const char *password, struct err *e)
{
	if (strchr(user, ':'))
		return err_set(e, ERR_USAGE, "%s: the basic-auth user name must not hold a colon", call->place);
	size_t len = strlen(user) + 1 + strlen(password);
	if (len > HTTP_HEADER_LINE_BYTES_MAX / 2)
		return err_set(e, ERR_LIMIT, "%s: basic-auth credentials of %zu bytes, the ceiling is %d", call->place,
		               len, HTTP_HEADER_LINE_BYTES_MAX / 2);
	// Not by CURLOPT_PASSWORD: libcurl keeps copies of a password that are never overwritten.
	char *plain = format_text("%s:%s", user, password), *coded = calloc(1, (len + 2) / 3 * 4 + 1), *line = NULL;
	if (plain && coded) {
		EVP_EncodeBlock((unsigned char *)coded, (const unsigned char *)plain, (int)len);
		line = format_text("Authorization: Basic %s", coded);
	}
	alloc_wipe(plain);
	alloc_wipe(coded);
	return add_secret_header(call, line, e);
}

static int add_aws(struct http_call *call, const struct http_aws *aws, struct err *e)
{
	call->aws_scope = strdup(aws->scope);
	call->user = strdup(aws->key_id);
	call->password = strdup(aws->secret);
	if (!call->aws_scope || !call->user || !call->password)
		return out_of_memory(e);
	if (!aws->session_token)
		return 0;
	return add_secret_header(call, format_text("X-Amz-Security-Token: %s", aws->session_token), e);
}

static bool header_is(const char *line, const char *name)
{
	size_t n = strlen(name);
	return strncasecmp(line, name, n) == 0 && line[n] == ':';
}

static int fill_headers(struct http_call *call, const struct http_request *r, const char *url_user,
                        const char *url_password, struct err *e)
{
	bool has_type = false, has_auth = false;
	for (size_t i = 0; r->headers && r->headers[i]; i++) {
		const char *line = r->headers[i], *colon = strchr(line, ':');
		size_t len = strlen(line);
		if (i >= HTTP_HEADERS_MAX)
			return err_set(e, ERR_LIMIT, "%s: more than %d request headers", call->place, HTTP_HEADERS_MAX);
		if (len > HTTP_HEADER_LINE_BYTES_MAX)
			return err_set(e, ERR_LIMIT, "%s: request header %zu has %zu bytes, the ceiling is %d",
			               call->place, i + 1, len, HTTP_HEADER_LINE_BYTES_MAX);
		// The line is not echoed: its value may be a credential.
		if (!colon || !http_is_token(line, (size_t)(colon - line)) || !http_is_field_value(line, len))
			return err_set(
			        e, ERR_USAGE,
			        "%s: request header %zu is not \"Name: value\" in one line without control characters",
			        call->place, i + 1);
		has_type |= header_is(line, "Content-Type");
		has_auth |= header_is(line, "Authorization");
		if (add_header(call, line, e) < 0)
			return -1;
	}
	// curl adds both by itself: a form type for any body, and a round trip waiting for "100 Continue". It would
	// sign a header without a value, and not send it.
	if (!r->aws && ((!has_type && add_header(call, "Content-Type:", e) < 0) || add_header(call, "Expect:", e) < 0))
		return -1;
	bool from_url = url_user[0] || url_password[0];
	if ((r->bearer_token != NULL) + (r->basic_user != NULL) + (r->aws != NULL) + from_url + has_auth > 1)
		return err_set(
		        e, ERR_USAGE,
		        "%s: credentials given twice (bearer token, basic auth, user in the URL, Authorization header)",
		        call->place);
	if (r->aws)
		return add_aws(call, r->aws, e);
	if (r->bearer_token)
		return add_bearer(call, r->bearer_token, e);
	if (r->basic_user)
		return add_basic(call, r->basic_user, r->basic_password ? r->basic_password : "", e);
	return from_url ? add_basic(call, url_user, url_password, e) : 0;
}

int http_call_fill(struct http_call *call, const struct http_request *r, struct err *e)
{
	if (!r->method || !http_is_token(r->method, strlen(r->method)) || strlen(r->method) >= sizeof call->method)
		return err_set(e, ERR_USAGE, "http request: unusable method");
	if (!r->url)
		return err_set(e, ERR_USAGE, "http request: no URL");
	if (r->timeout_ms < 0 || r->connect_timeout_ms < 0 || r->idle_timeout_ms < 0)
		return err_set(e, ERR_USAGE, "http request: negative timeout");
	if (r->body_len > HTTP_REQUEST_BODY_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "http request: a body of %zu bytes, the ceiling is %d", r->body_len,
		               HTTP_REQUEST_BODY_BYTES_MAX);
	snprintf(call->method, sizeof call->method, "%s", r->method);
	call->timeout_ms = r->timeout_ms ? r->timeout_ms : HTTP_TIMEOUT_MS;
	call->connect_timeout_ms = r->connect_timeout_ms ? r->connect_timeout_ms : call->client->connect_timeout_ms;
	call->max_body_bytes = r->max_body_bytes ? r->max_body_bytes : HTTP_BODY_BYTES_MAX;
	call->no_compression = r->no_compression || r->on_data; // an encoder may keep an event back
	call->may_start = r->may_start;
	call->is_background = r->is_background && !r->on_data;
	call->on_data = r->on_data;
	call->on_body = r->on_data ? NULL : r->on_body;
	call->idle_timeout_ms = r->idle_timeout_ms;
	char *user = NULL, *password = NULL;
	int rc = fill_url(call, r, &user, &password, e);
	if (rc == 0)
		rc = fill_headers(call, r, user ? user : "", password ? password : "", e);
	alloc_wipe(user);
	alloc_wipe(password);
	if (rc == 0 && call->https && r->tls)
		rc = http_tls_get(call->client, r->tls, &call->tls, e);
	if (rc == 0) {
		call->has_body = r->body != NULL;
		call->body_len = r->body ? r->body_len : 0;
		call->body = malloc(call->body_len + 1);
		if (!call->body)
			rc = out_of_memory(e);
		else if (call->body_len > 0)
			memcpy(call->body, r->body, call->body_len);
	}
	return rc;
}

void http_call_wipe(struct http_call *call)
{
	for (struct curl_slist *h = call->headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(call->headers);
	curl_slist_free_all(call->connect_to);
	http_tls_put(call->tls);
	alloc_wipe(call->user);
	alloc_wipe(call->password);
	free(call->aws_scope);
	free(call->url);
	free(call->body);
}

// ---- the transfer ----

// Returns the value of the header `name:` when the line is that header, and its length without the line end.
static const char *value_of(const char *line, size_t len, const char *name, size_t *ret_len)
{
	size_t n = strlen(name);
	if (len <= n || strncasecmp(line, name, n) != 0)
		return NULL;
	while (len > n && (line[len - 1] == '\r' || line[len - 1] == '\n'))
		len--;
	*ret_len = len - n;
	return line + n;
}

// From inside of curl no call could be canceled, so a stream only keeps its bytes: http_client.c hands them on once
// curl has returned.
static void has_news(struct http_call *call)
{
	if (!call->has_news)
		TAILQ_INSERT_TAIL(&call->client->news, call, news_link);
	call->has_news = true;
}

static void stream_headers_ended(struct http_call *call)
{
	long status = 0;
	curl_easy_getinfo(call->slot->easy, CURLINFO_RESPONSE_CODE, &status);
	if (call->is_open || status < 200 || status >= 300) // trailers; 100 Continue; an error to be collected
		return;
	call->is_open = true;
	call->slot->body.max = HTTP_STREAM_BYTES_MAX;
	has_news(call);
}

// Keeps a piece of the body. Returns 0, or -1 and *e.
static int keep(struct http_call *call, const char *data, size_t len, struct err *e)
{
	struct buf *body = &call->slot->body;
	if (buf_put(body, data, len) == 0)
		return 0;
	if (len <= body->max - body->len)
		return err_set_code(e, ERR_INTERNAL, CURLE_WRITE_ERROR,
		                    "%s: out of memory after %zu bytes of the reply", call->place, body->len);
	if (call->is_open)
		return err_set_code(e, ERR_LIMIT, CURLE_WRITE_ERROR,
		                    "%s: more than %d bytes of the stream came at once", call->place,
		                    HTTP_STREAM_BYTES_MAX);
	return err_set_code(e, ERR_LIMIT, CURLE_WRITE_ERROR,
	                    "%s: the reply has more than %zu bytes, the ceiling is %zu", call->place, body->max,
	                    body->max);
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct http_call *call = arg;
	size_t len = size * n;
	call->header_bytes += len;
	if (call->header_bytes > HTTP_REPLY_HEADER_BYTES_MAX) {
		err_set_code(&call->slot->refused, ERR_LIMIT, CURLE_WRITE_ERROR,
		             "%s: the reply's headers have at least %zu bytes, the ceiling is %d", call->place,
		             call->header_bytes, HTTP_REPLY_HEADER_BYTES_MAX);
		return 0;
	}
	if (len >= 5 && memcmp(line, "HTTP/", 5) == 0)
		call->retry_after_ms = call->date_ms = 0; // a new reply starts (after a 100 Continue)
	size_t n_value;
	const char *value = value_of(line, len, "date:", &n_value);
	if (value)
		call->date_ms = http_parse_date_s(value, n_value) * 1000;
	// An HTTP-date uses the server's clock, which Date has already reported where the server follows RFC 9110,
	// 6.6.1.
	value = value_of(line, len, "retry-after:", &n_value);
	if (value)
		call->retry_after_ms = http_parse_retry_after_ms(
		        value, n_value, call->date_ms > 0 ? call->date_ms / 1000 : (int64_t)time(NULL));
	if (call->on_data && (line[0] == '\r' || line[0] == '\n'))
		stream_headers_ended(call);
	return len;
}

static bool goes_to_sink(const struct http_call *call)
{
	long status = 0;
	if (call->on_body)
		curl_easy_getinfo(call->slot->easy, CURLINFO_RESPONSE_CODE, &status);
	return status >= 200 && status < 300;
}

static int take_body(struct http_call *call, const char *data, size_t len, struct err *e)
{
	curl_off_t announced = -1;
	if (call->is_open) {
		int rc = keep(call, data, len, e);
		if (rc == 0)
			has_news(call);
		return rc;
	}
	if (goes_to_sink(call))
		return call->on_body(call->arg, data, len) == 0
		               ? 0
		               : err_set_code(e, ERR_CANCELED, CURLE_WRITE_ERROR,
		                              "%s: the rest of the reply was not wanted", call->place);
	// A reply that announces too much is refused at its first byte. What it announces is before decompression.
	if (call->slot->body.len == 0 &&
	    curl_easy_getinfo(call->slot->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced) == CURLE_OK &&
	    announced > 0 && (uint64_t)announced > call->max_body_bytes)
		return err_set_code(e, ERR_LIMIT, CURLE_WRITE_ERROR,
		                    "%s: the reply announces %" PRId64 " bytes, the ceiling is %zu", call->place,
		                    (int64_t)announced, call->max_body_bytes);
	return keep(call, data, len, e);
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct http_call *call = arg;
	http_call_heard(call, size * n);
	return take_body(call, data, size * n, &call->slot->refused) == 0 ? size * n : 0;
}

// A peer that vanished without a word (node gone, rules changed) must not occupy a shared HTTP/2 connection, and with
// it every later call, until the kernel gives up after a quarter of an hour.
static int on_new_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	unsigned ms = HTTP_TCP_USER_TIMEOUT_MS;
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms); // best effort: only a shortcut
	return CURL_SOCKOPT_OK;
}

// Between the start of a call and its last byte lie a connection and a handshake, or a process that was stopped.
static bool may_go_on(struct http_call *call)
{
	return call->may_start(call->arg, &call->slot->refused) == 0;
}

#if LIBCURL_VERSION_NUM >= 0x075000
static int on_connected(void *arg, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
	return may_go_on(arg) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}
#endif

// The body of a call with a gate, which HTTP/2 sends apart from the headers.
static size_t on_send_body(char *data, size_t size, size_t n, void *arg)
{
	struct http_call *call = arg;
	if (call->may_start && call->body_sent == 0 && call->body_len > 0 && !may_go_on(call))
		return CURL_READFUNC_ABORT;
	size_t len = size * n, left = call->body_len - call->body_sent;
	if (len > left)
		len = left;
	memcpy(data, call->body + call->body_sent, len);
	call->body_sent += len;
	return len;
}

// Sent again on another connection.
static int on_seek_body(void *arg, curl_off_t offset, int origin)
{
	struct http_call *call = arg;
	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > call->body_len)
		return CURL_SEEKFUNC_CANTSEEK;
	call->body_sent = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

#define RECEIVE_BYTES 4096L

CURLcode http_call_setup(struct http_call *call, struct http_slot *slot)
{
	CURL *easy = slot->easy;
	CURLcode rc = CURLE_OK;
#define SET(option, value)                                                                                             \
	do {                                                                                                           \
		if (rc == CURLE_OK)                                                                                    \
			rc = curl_easy_setopt(easy, option, value);                                                    \
	} while (0)
	SET(CURLOPT_PRIVATE, call);
	SET(CURLOPT_ERRORBUFFER, slot->error_text);
	SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
	// Else removing a transfer waits for the resolver's thread, and the loop with it.
	SET(CURLOPT_QUICK_EXIT, 1L);
#endif
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	SET(CURLOPT_FOLLOWLOCATION, 0L); // a redirect would carry the credentials elsewhere
	SET(CURLOPT_URL, call->url);
	if (call->loopback)
		SET(CURLOPT_NOPROXY, "*");
	if (call->connect_to)
		SET(CURLOPT_CONNECT_TO, call->connect_to);
	SET(CURLOPT_USERAGENT, "gpuscale/" GPUSCALE_VERSION);
	SET(CURLOPT_HTTPHEADER, call->headers);
	SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	if (call->aws_scope)
		SET(CURLOPT_AWS_SIGV4, call->aws_scope);
	if (call->user) {
		SET(CURLOPT_USERNAME, call->user);
		SET(CURLOPT_PASSWORD, call->password);
	}
	if (!call->no_compression)
		SET(CURLOPT_ACCEPT_ENCODING, "gzip");
	SET(CURLOPT_HTTP_VERSION, call->client->no_http2 ? (long)CURL_HTTP_VERSION_1_1 : (long)CURL_HTTP_VERSION_2TLS);
	if (call->client->no_http2) // HTTP/2 needs the 16 KiB that are the default
		SET(CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
	if (call->https && !call->client->no_http2)
		SET(CURLOPT_PIPEWAIT, 1L); // prefer a stream on the pending connection to a second connection
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)call->connect_timeout_ms);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_TCP_KEEPIDLE, HTTP_TCP_KEEPALIVE_S);
	SET(CURLOPT_TCP_KEEPINTVL, HTTP_TCP_KEEPALIVE_EVERY_S);
	SET(CURLOPT_SOCKOPTFUNCTION, on_new_socket);
#if LIBCURL_VERSION_NUM >= 0x075000
	if (call->may_start && call->body_len == 0) {
		SET(CURLOPT_PREREQFUNCTION, on_connected);
		SET(CURLOPT_PREREQDATA, call);
	}
#endif
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, call);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, call);
	if (strcmp(call->method, "HEAD") == 0) {
		SET(CURLOPT_NOBODY, 1L);
	} else if (call->has_body || strcmp(call->method, "POST") == 0 || strcmp(call->method, "PUT") == 0 ||
	           strcmp(call->method, "PATCH") == 0) {
		SET(CURLOPT_POST, 1L);
		SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
		// The least that libcurl has; its default is 64 KiB.
		SET(CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
		if (call->may_start && call->body_len > 0) {
			SET(CURLOPT_READFUNCTION, on_send_body);
			SET(CURLOPT_READDATA, call);
			SET(CURLOPT_SEEKFUNCTION, on_seek_body);
			SET(CURLOPT_SEEKDATA, call);
		} else {
			SET(CURLOPT_POSTFIELDS, call->body);
		}
		SET(CURLOPT_CUSTOMREQUEST, call->method);
	} else {
		SET(CURLOPT_HTTPGET, 1L);
		SET(CURLOPT_CUSTOMREQUEST, call->method);
	}
#undef SET
	if (rc == CURLE_OK && call->https)
		rc = http_tls_setup(easy, call->tls ? &call->tls->tls : NULL, &call->client->tls_note);
	return rc;
}
