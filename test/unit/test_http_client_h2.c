// SPDX-License-Identifier: Apache-2.0
// Goal: over HTTP/2, a reply ends although another transfer of the connection read its last bytes.
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/http/http_client.h"
#include "test/support/certs.h"
#include "test/support/http_fixture.h"

#define FRAMES      5
#define FRAME_BYTES 4096 // so that FRAMES of them exceed the receive buffer of libcurl, and one less does not
#define LAST_BYTES  2576
#define ALL_BYTES   ((FRAMES - 1) * FRAME_BYTES + LAST_BYTES)
#define WATCHES     10 // any of them may be the one that libcurl lets read first
#define IDLE_MS     10000
#define SERVER_S    120

static struct certs certs;
static pid_t server;
static int server_port;

static int make_certs(void **state)
{
	return certs_init(&certs);
}

static int remove_certs(void **state)
{
	certs_done(&certs);
	return 0;
}

// ---- the server: one connection, in a process of its own ----

struct connection {
	SSL *ssl;
	BIO *out; // what TLS has to send, so that several records leave at once
	int fd;
	nghttp2_session *session;
	int32_t watch, list; // the latest streams; 0: none yet
	size_t sent;         // bytes of the list
	bool may_send;       // the body of the list
};

static void flush(struct connection *c)
{
	char *bytes;
	size_t len = (size_t)BIO_get_mem_data(c->out, &bytes);
	if (len > 0 && send(c->fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
		_exit(1);
	BIO_reset(c->out);
}

// One record for each frame.
static void send_frames(struct connection *c)
{
	const uint8_t *frame;
	ssize_t len;
	while ((len = nghttp2_session_mem_send(c->session, &frame)) > 0)
		if (SSL_write(c->ssl, frame, (int)len) != len)
			_exit(1);
	flush(c);
}

static ssize_t on_read(nghttp2_session *session, int32_t stream, uint8_t *data, size_t max, uint32_t *flags,
                       nghttp2_data_source *source, void *arg)
{
	struct connection *c = arg;
	if (stream != c->list || !c->may_send)
		return NGHTTP2_ERR_DEFERRED;
	size_t left = ALL_BYTES - c->sent, len = left < FRAME_BYTES ? left : FRAME_BYTES;
	memset(data, 'x', len);
	c->sent += len;
	if (len == left)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	struct connection *c = arg;
	if (name_len == 5 && memcmp(name, ":path", 5) == 0 && value_len == 5 && memcmp(value, "/list", 5) == 0)
		c->list = frame->hd.stream_id;
	if (name_len == 5 && memcmp(name, ":path", 5) == 0 && value_len == 6 && memcmp(value, "/watch", 6) == 0)
		c->watch = frame->hd.stream_id;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct connection *c = arg;
	static uint8_t name[] = ":status", ok[] = "200", absent[] = "404";
	const nghttp2_data_provider body = {.read_callback = on_read};
	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	bool has_body = frame->hd.stream_id == c->list || frame->hd.stream_id == c->watch;
	const nghttp2_nv status = {name, has_body ? ok : absent, 7, 3, NGHTTP2_NV_FLAG_NONE};
	return nghttp2_submit_response(session, frame->hd.stream_id, &status, 1, has_body ? &body : NULL);
}

static int on_alpn(SSL *ssl, const unsigned char **ret_out, unsigned char *ret_len, const unsigned char *in,
                   unsigned len, void *arg)
{
	*ret_out = (const unsigned char *)"h2";
	*ret_len = 2;
	return SSL_TLSEXT_ERR_OK;
}

// Ends the process.
static void serve(int listener)
{
	struct connection c = {0};
	static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100}};
	nghttp2_session_callbacks *callbacks;
	SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
	char bytes[16384];
	int len;
	alarm(SERVER_S);
	c.fd = accept(listener, NULL, NULL);
	SSL_CTX_use_certificate_chain_file(tls, certs.path[CERTS_SERVER]);
	SSL_CTX_use_PrivateKey_file(tls, certs.path[CERTS_SERVER_KEY], SSL_FILETYPE_PEM);
	SSL_CTX_set_alpn_select_cb(tls, on_alpn, NULL);
	c.ssl = SSL_new(tls);
	SSL_set_fd(c.ssl, c.fd);
	if (SSL_accept(c.ssl) != 1)
		_exit(1);
	c.out = BIO_new(BIO_s_mem());
	SSL_set0_wbio(c.ssl, c.out);
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_server_new(&c.session, callbacks, &c);
	nghttp2_submit_settings(c.session, NGHTTP2_FLAG_NONE, settings, 1);
	send_frames(&c);
	while ((len = SSL_read(c.ssl, bytes, sizeof bytes)) > 0) {
		if (nghttp2_session_mem_recv(c.session, (uint8_t *)bytes, (size_t)len) != len)
			_exit(1);
		send_frames(&c);
		if (c.watch && c.list && !c.may_send) {
			usleep(100000); // the client has read the headers, and waits
			c.may_send = true;
			nghttp2_session_resume_data(c.session, c.list);
			send_frames(&c);
		}
	}
	_exit(0);
}

static int start_server(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0)
		return -1;
	bool listens = bind(listener, (struct sockaddr *)&at, len) == 0 && listen(listener, 1) == 0 &&
	               getsockname(listener, (struct sockaddr *)&at, &len) == 0;
	server_port = ntohs(at.sin_port);
	server = listens ? fork() : -1;
	if (server == 0)
		serve(listener);
	close(listener);
	return server > 0 ? http_fixture_setup(state) : -1;
}

static int stop_server(void **state)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return http_fixture_teardown(state);
}

// ---- the client ----

struct stream {
	int opened, done;
	size_t bytes;
	char error[256];
};

static void on_data(void *arg, const char *data, size_t len)
{
	struct stream *s = arg;
	s->opened += len == 0;
	s->bytes += len;
}

static void on_done(void *arg, const struct http_response *response, const struct err *error)
{
	struct stream *s = arg;
	s->done++;
	snprintf(s->error, sizeof s->error, "%s", error ? error->msg : "");
}

static struct http_call *request(struct http_fixture *f, const char *path, bool is_stream, int64_t idle_ms,
                                 struct stream *s)
{
	char url[128];
	struct http_call *call;
	struct err e;
	const struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
	snprintf(url, sizeof url, "https://127.0.0.1:%d/%s", server_port, path);
	const struct http_request r = {.method = "GET",
	                               .url = url,
	                               .tls = &tls,
	                               .timeout_ms = IDLE_MS,
	                               .idle_timeout_ms = idle_ms,
	                               .on_data = is_stream ? on_data : NULL};
	assert_int_equal(http_client_submit(f->client, &r, on_done, s, &call, &e), 0);
	return call;
}

static void check_end(struct http_fixture *f, bool is_stream)
{
	static struct stream watches[WATCHES], list; // they outlive a test that fails
	struct http_call *calls[WATCHES];
	memset(watches, 0, sizeof watches);
	memset(&list, 0, sizeof list);
	for (int i = 0; i < WATCHES; i++) {
		calls[i] = request(f, "watch", true, 0, &watches[i]);
		assert_true(test_loop_until(f->loop, &watches[i].opened, 1, TEST_PATIENCE_MS));
	}
	request(f, "list", is_stream, IDLE_MS, &list);
	assert_true(test_loop_until(f->loop, &list.done, 1, TEST_PATIENCE_MS));
	assert_string_equal(list.error, "");
	if (is_stream)
		assert_int_equal(list.bytes, ALL_BYTES);
	for (int i = 0; i < WATCHES; i++) {
		assert_int_equal(watches[i].done, 0);
		http_call_cancel(calls[i]);
	}
}

static void reply_in_pieces_ends(void **state)
{
	check_end(*state, true);
}

static void collected_reply_ends(void **state)
{
	check_end(*state, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(reply_in_pieces_ends, start_server, stop_server),
	        cmocka_unit_test_setup_teardown(collected_reply_ends, start_server, stop_server),
	};
	return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
