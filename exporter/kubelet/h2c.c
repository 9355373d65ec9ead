// SPDX-License-Identifier: Apache-2.0
#include "exporter/kubelet/h2c.h"

#include <nghttp2/nghttp2.h>

#include "base/base.h"

#define PREFIX_BYTES  5
#define STREAM        1
#define OUT_BYTES_MAX (64 * 1024) // the replies to PING and SETTINGS, and a WINDOW_UPDATE for each 32 KiB

// gRPC status codes: their names and the kind of error they map to.
static const struct {
	const char *name;
	enum err_kind kind;
} statuses[] = {
        {"OK", ERR_NONE},
        {"CANCELLED", ERR_SERVER},
        {"UNKNOWN", ERR_SERVER},
        {"INVALID_ARGUMENT", ERR_REJECTED},
        {"DEADLINE_EXCEEDED", ERR_TIMEOUT},
        {"NOT_FOUND", ERR_NOT_FOUND},
        {"ALREADY_EXISTS", ERR_CONFLICT},
        {"PERMISSION_DENIED", ERR_AUTH},
        {"RESOURCE_EXHAUSTED", ERR_THROTTLED},
        {"FAILED_PRECONDITION", ERR_REJECTED},
        {"ABORTED", ERR_CONFLICT},
        {"OUT_OF_RANGE", ERR_REJECTED},
        {"UNIMPLEMENTED", ERR_UNSUPPORTED},
        {"INTERNAL", ERR_SERVER},
        {"UNAVAILABLE", ERR_UNREACHABLE},
        {"DATA_LOSS", ERR_SERVER},
        {"UNAUTHENTICATED", ERR_AUTH},
};
#define STATUSES ((int)(sizeof statuses / sizeof statuses[0]))

// ---- the reply: callbacks of libnghttp2, which stops when one fails ----

// The stream has ended: sets c->done if the reply is complete, else *e.
static int end_stream(struct h2c *c, struct err *e)
{
	int status = c->grpc_status;
	bool whole = c->n_prefix == PREFIX_BYTES && c->message.len == c->message_len;
	if (status > 0 && status < STATUSES)
		return err_set_code(e, statuses[status].kind, status, "the peer replied with gRPC status %d, %s",
		                    status, statuses[status].name);
	if (status > 0)
		return err_set_code(e, ERR_SERVER, status, "the peer replied with gRPC status %d", status);
	if (!whole)
		return err_set(e, ERR_PROTOCOL, "the reply ends without a complete gRPC message");
	// A truncated reply is an error: an empty message would mean that no pod uses a GPU.
	if (status < 0)
		return err_set(e, ERR_PROTOCOL, "the reply ends without a gRPC status");
	c->done = true;
	return -1; // nothing more is read
}

static int take_data(struct h2c *c, const uint8_t *p, size_t len, struct err *e)
{
	while (len > 0 && c->n_prefix < PREFIX_BYTES) {
		c->prefix[c->n_prefix++] = *p++;
		len--;
		if (c->n_prefix < PREFIX_BYTES)
			continue;
		c->message_len = (size_t)c->prefix[1] << 24 | (size_t)c->prefix[2] << 16 | (size_t)c->prefix[3] << 8 |
		                 c->prefix[4];
		if (c->prefix[0] != 0)
			return err_set(e, ERR_PROTOCOL,
			               "the gRPC message is compressed, although no encoding was requested");
		if (c->message_len > c->max_message_bytes)
			return err_set(e, ERR_LIMIT, "a reply of %zu bytes, the ceiling is %zu", c->message_len,
			               c->max_message_bytes);
	}
	if (len > c->message_len - c->message.len)
		return err_set(e, ERR_PROTOCOL, "more than one gRPC message in the reply");
	if (buf_put(&c->message, p, len) < 0)
		return err_no_memory(e);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t len, void *arg)
{
	struct h2c *c = arg;
	return stream == STREAM && take_data(c, data, len, c->error) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t len, uint8_t flags, void *arg)
{
	static const char grpc_status[] = "grpc-status";
	struct h2c *c = arg;
	int64_t status = -1;
	c->header_bytes += name_len + len;
	if (c->header_bytes > H2C_HEADER_BYTES_MAX)
		return err_set(c->error, ERR_LIMIT, "the reply's headers exceed the ceiling of %d bytes",
		               H2C_HEADER_BYTES_MAX);
	if (frame->hd.stream_id != STREAM || name_len != sizeof grpc_status - 1 ||
	    memcmp(name, grpc_status, name_len) != 0)
		return 0;
	if (len <= 2 && value[0] != '-')
		num_parse_i64((const char *)value, len, 0, 99, &status, NULL);
	c->grpc_status = (int)status;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2c *c = arg;
	switch (frame->hd.type) {
	case NGHTTP2_SETTINGS:
	case NGHTTP2_PING:
		return ++c->n_control <= H2C_CONTROL_MAX
		               ? 0
		               : err_set(c->error, ERR_LIMIT, "more than %d control frames in one reply",
		                         H2C_CONTROL_MAX);
	case NGHTTP2_RST_STREAM: // also with NO_ERROR: the stream has not ended
		return frame->hd.stream_id != STREAM
		               ? 0
		               : err_set(c->error, ERR_UNREACHABLE, "the peer resets the call (HTTP/2 error %u)",
		                         frame->rst_stream.error_code);
	case NGHTTP2_GOAWAY:
		if (frame->goaway.last_stream_id >= STREAM)
			return 0; // the stream may still complete
		return err_set_code(c->error, ERR_UNREACHABLE, (int)(frame->goaway.error_code & 0xffff),
		                    "the peer closes the connection (HTTP/2 error %u)", frame->goaway.error_code);
	default:
		return 0;
	}
}

static int on_invalid(nghttp2_session *session, const nghttp2_frame *frame, int code, void *arg)
{
	struct h2c *c = arg;
	return err_set(c->error, ERR_PROTOCOL, "malformed HTTP/2: %s", nghttp2_strerror(code));
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
	struct h2c *c = arg;
	if (stream != STREAM) // a push, which has been refused
		return 0;
	if (code == NGHTTP2_NO_ERROR)
		return end_stream(c, c->error);
	return err_set(c->error, ERR_UNREACHABLE, "the peer resets the call (HTTP/2 error %u)", code);
}

// ---- the call ----

// Takes what libnghttp2 has to send. Returns 0 or one of its errors.
static int take_output(struct h2c *c)
{
	const uint8_t *data;
	ssize_t n;
	while ((n = nghttp2_session_mem_send(c->session, &data)) > 0)
		if (buf_put(&c->out, data, (size_t)n) < 0)
			return NGHTTP2_ERR_NOMEM;
	return (int)n;
}

// The body of the request: an empty message.
static ssize_t read_request(nghttp2_session *session, int32_t stream, uint8_t *out, size_t size, uint32_t *flags,
                            nghttp2_data_source *source, void *arg)
{
	memset(out, 0, PREFIX_BYTES);
	*flags = NGHTTP2_DATA_FLAG_EOF;
	return PREFIX_BYTES;
}

static nghttp2_session *session_new(struct h2c *c)
{
	nghttp2_session *session = NULL;
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
		nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
		nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid);
		nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
		nghttp2_option_set_no_http_messaging(option, 1); // a gRPC status without an HTTP status is valid, too
		nghttp2_session_client_new2(&session, callbacks, c, option);
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return session;
}

int h2c_init(struct h2c *c, const char *path, size_t max_message_bytes, struct err *e)
{
#define HEADER(name, value)                                                                                            \
	{                                                                                                              \
		(uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), strlen(name), strlen(value),              \
		        NGHTTP2_NV_FLAG_NONE                                                                           \
	}
	const nghttp2_nv headers[] = {
	        HEADER(":method", "POST"),
	        HEADER(":scheme", "http"),
	        HEADER(":path", path),
	        HEADER(":authority", "localhost"),
	        HEADER("content-type", "application/grpc"),
	        HEADER("te", "trailers"),
	};
#undef HEADER
	static const nghttp2_settings_entry no_push = {NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
	const nghttp2_data_provider body = {.read_callback = read_request};
	assert(max_message_bytes <= H2C_MESSAGE_BYTES_MAX);
	*c = (struct h2c){.max_message_bytes = max_message_bytes, .grpc_status = -1, .error = e};
	buf_init(&c->message, max_message_bytes + 1);
	buf_init(&c->out, OUT_BYTES_MAX);
	c->session = session_new(c);
	if (!c->session || nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, &no_push, 1) < 0 ||
	    nghttp2_submit_request(c->session, NULL, headers, sizeof headers / sizeof headers[0], &body, NULL) < 0 ||
	    take_output(c) < 0)
		return err_no_memory(e);
	return 0;
}

void h2c_done(struct h2c *c)
{
	nghttp2_session_del(c->session);
	buf_done(&c->message);
	buf_done(&c->out);
}

int h2c_feed(struct h2c *c, const void *data, size_t len, struct err *e)
{
	if (c->failed)
		return err_set(e, ERR_PROTOCOL, "the call has failed already");
	c->failed = true; // unless all is well below
	c->error = e;
	c->received += len;
	if (c->received > H2C_REPLY_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the frames of the reply exceed the ceiling of %d bytes",
		               H2C_REPLY_BYTES_MAX);
	ssize_t rc = nghttp2_session_mem_recv(c->session, data, len);
	if (rc >= 0)
		rc = take_output(c);
	if (rc == NGHTTP2_ERR_CALLBACK_FAILURE)
		return c->done ? 1 : -1; // the callback has set *e
	if (rc < 0)
		return err_set(e, rc == NGHTTP2_ERR_NOMEM ? ERR_INTERNAL : ERR_LIMIT, "HTTP/2: %s",
		               nghttp2_strerror((int)rc));
	if (!nghttp2_session_want_read(c->session))
		return err_set(e, ERR_PROTOCOL, "the peer does not speak HTTP/2");
	c->failed = false;
	return 0;
}
