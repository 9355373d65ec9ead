// SPDX-License-Identifier: Apache-2.0
#include "exporter/kubelet/h2c.h"

#include "base/base.h"

enum frame_type {
	FRAME_DATA = 0,
	FRAME_HEADERS = 1,
	FRAME_RST_STREAM = 3,
	FRAME_SETTINGS = 4,
	FRAME_PUSH_PROMISE = 5,
	FRAME_PING = 6,
	FRAME_GOAWAY = 7,
	FRAME_WINDOW_UPDATE = 8,
	FRAME_CONTINUATION = 9
};
#define FLAG_END_STREAM  0x1 // DATA, HEADERS
#define FLAG_ACK         0x1 // SETTINGS, PING
#define FLAG_END_HEADERS 0x4
#define FLAG_PADDED      0x8
#define FLAG_PRIORITY    0x20
#define SETTING_TABLE    1
#define SETTING_PUSH     2
#define SETTING_WINDOW   4
#define FRAME_HEAD_BYTES 9
#define PREFIX_BYTES     5
#define STREAM           1u
#define WINDOW_DEFAULT   65535u
// The complete reply with its prefix, and room for padding, so that WINDOW_UPDATE is never needed.
#define WINDOW ((uint32_t)H2C_MESSAGE_BYTES_MAX + 65536u)

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

static uint32_t read_u32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_u32(struct buf *b, uint32_t v)
{
	const unsigned char bytes[] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16), (unsigned char)(v >> 8),
	                               (unsigned char)v};
	buf_put(b, bytes, sizeof bytes);
}

static void put_frame_head(struct buf *b, size_t len, enum frame_type type, unsigned flags, uint32_t stream)
{
	const unsigned char head[] = {(unsigned char)(len >> 16), (unsigned char)(len >> 8), (unsigned char)len,
	                              (unsigned char)type, (unsigned char)flags};
	buf_put(b, head, sizeof head);
	put_u32(b, stream);
}

static void put_setting(struct buf *b, unsigned id, uint32_t value)
{
	buf_putc(b, 0);
	buf_putc(b, (char)id);
	put_u32(b, value);
}

// Every length below is under 127 and fits HPACK's one-byte form. No Huffman coding, no indexing.
static void put_headers(struct buf *b, const char *path)
{
	static const char before[] = "\x83\x86\x04"; // :method POST, :scheme http, :path
	static const char after[] = "\x01\x09localhost\x0f\x10\x10"
	                            "application/grpc\x00\x02te\x08trailers"; // :authority, content-type, te
	size_t len = strlen(path);
	put_frame_head(b, sizeof before - 1 + 1 + len + sizeof after - 1, FRAME_HEADERS, FLAG_END_HEADERS, STREAM);
	buf_put(b, before, sizeof before - 1);
	buf_putc(b, (char)len);
	buf_put(b, path, len);
	buf_put(b, after, sizeof after - 1);
}

void h2c_init(struct h2c *c, const char *path, size_t max_message_bytes)
{
	static const char empty_message[PREFIX_BYTES] = {0};
	assert(strlen(path) <= H2C_PATH_BYTES_MAX && max_message_bytes <= H2C_MESSAGE_BYTES_MAX);
	memset(c, 0, sizeof *c);
	c->max_message_bytes = max_message_bytes;
	c->grpc_status = -1;
	buf_init(&c->message, max_message_bytes + 1);
	buf_init(&c->out, 1024 + (size_t)H2C_CONTROL_MAX * (FRAME_HEAD_BYTES + 8));
	buf_init(&c->headers, H2C_HEADER_BYTES_MAX);
	buf_puts(&c->out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	put_frame_head(&c->out, 18, FRAME_SETTINGS, 0, 0);
	put_setting(&c->out, SETTING_TABLE, 0); // so that headers can be decoded without state
	put_setting(&c->out, SETTING_PUSH, 0);
	put_setting(&c->out, SETTING_WINDOW, WINDOW);
	put_frame_head(&c->out, 4, FRAME_WINDOW_UPDATE, 0, 0);
	put_u32(&c->out, WINDOW - WINDOW_DEFAULT);
	put_headers(&c->out, path);
	put_frame_head(&c->out, PREFIX_BYTES, FRAME_DATA, FLAG_END_STREAM, STREAM);
	buf_put(&c->out, empty_message, PREFIX_BYTES);
}

void h2c_done(struct h2c *c)
{
	buf_done(&c->message);
	buf_done(&c->out);
	buf_done(&c->headers);
}

// ---- headers: only grpc-status is looked for ----

struct span {
	const unsigned char *p, *end;
};

// Decodes an HPACK integer with an n-bit prefix. False if it is truncated or above 2^21.
static bool read_int(struct span *s, unsigned bits, uint32_t *ret_value)
{
	uint32_t max = (1u << bits) - 1;
	if (s->p == s->end)
		return false;
	*ret_value = *s->p++ & max;
	if (*ret_value < max)
		return true;
	for (unsigned shift = 0; shift <= 14 && s->p < s->end; shift += 7) {
		unsigned char c = *s->p++;
		*ret_value += (uint32_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return true;
	}
	return false;
}

struct hpack_string {
	const unsigned char *p;
	size_t len;
	bool huffman;
};

static bool read_string(struct span *s, struct hpack_string *ret_string)
{
	uint32_t len;
	ret_string->huffman = s->p < s->end && (*s->p & 0x80);
	if (!read_int(s, 7, &len) || len > (size_t)(s->end - s->p))
		return false;
	ret_string->p = s->p;
	ret_string->len = len;
	s->p += len;
	return true;
}

static bool is_grpc_status(const struct hpack_string *name)
{
	static const char plain[] = "grpc-status", huffman[] = "\x9a\xca\xc8\xb2\x12\x34\xda\x8f";
	const char *expected = name->huffman ? huffman : plain;
	return name->len == strlen(expected) && memcmp(name->p, expected, name->len) == 0;
}

// A number of one or two digits; -1 for other text. In HPACK's Huffman code '0'..'2' have the 5-bit codes 0..2 and
// '3'..'9' the 6-bit codes 25..31; the last byte is padded with ones.
static int read_status(const struct hpack_string *s)
{
	if (s->len < 1 || s->len > 2)
		return -1;
	int value = 0, digits = 0;
	if (!s->huffman) {
		for (size_t i = 0; i < s->len; i++) {
			if (s->p[i] < '0' || s->p[i] > '9')
				return -1;
			value = value * 10 + (s->p[i] - '0');
		}
		return value;
	}
	unsigned bits = (unsigned)s->len * 8, word = s->len == 1 ? s->p[0] : (unsigned)s->p[0] << 8 | s->p[1];
	while (bits >= 5 && digits < 2) {
		unsigned five = word >> (bits - 5) & 31;
		if (five <= 2) {
			value = value * 10 + (int)five;
			bits -= 5;
		} else {
			unsigned six = bits >= 6 ? word >> (bits - 6) & 63 : 63;
			if (six < 25 || six > 31)
				break;
			value = value * 10 + (int)(six - 22);
			bits -= 6;
		}
		digits++;
	}
	return digits ? value : -1;
}

static int read_header_block(struct h2c *c, struct err *e)
{
	struct span s = {(const unsigned char *)buf_str(&c->headers), NULL};
	s.end = s.p + c->headers.len;
	while (s.p < s.end) {
		unsigned char first = *s.p;
		uint32_t index;
		bool literal = !(first & 0x80) && (first & 0xe0) != 0x20;
		unsigned bits = first & 0x80 ? 7 : first & 0x40 ? 6 : first & 0x20 ? 5 : 4;
		struct hpack_string name = {.p = NULL}, value;
		if (!read_int(&s, bits, &index))
			return err_set(e, ERR_PROTOCOL, "malformed HTTP/2 headers");
		if (!literal)
			continue; // an indexed field, which is never grpc-status, or a new table size
		if ((index == 0 && !read_string(&s, &name)) || !read_string(&s, &value))
			return err_set(e, ERR_PROTOCOL, "malformed HTTP/2 headers");
		if (name.p && is_grpc_status(&name))
			c->grpc_status = read_status(&value);
	}
	buf_reset(&c->headers);
	return 0;
}

// ---- the reply ----

// The stream has ended: returns 1 if the reply is complete, else -1 and *e.
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
	return 1;
}

static int take_data(struct h2c *c, const unsigned char *p, size_t len, struct err *e)
{
	while (len > 0 && c->n_prefix < PREFIX_BYTES) {
		c->prefix[c->n_prefix++] = *p++;
		len--;
		if (c->n_prefix < PREFIX_BYTES)
			continue;
		c->message_len = read_u32(c->prefix + 1);
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

// Removes padding (and a priority) from the payload of DATA and HEADERS.
static int cut_padding(const unsigned char **p, size_t *len, unsigned flags, bool may_have_priority, struct err *e)
{
	size_t pad = 0, before = 0;
	if (flags & FLAG_PADDED) {
		if (*len < 1)
			return err_set(e, ERR_PROTOCOL, "malformed HTTP/2 padding");
		pad = **p;
		before = 1;
	}
	if (may_have_priority && flags & FLAG_PRIORITY)
		before += 5;
	if (before + pad > *len)
		return err_set(e, ERR_PROTOCOL, "malformed HTTP/2 padding");
	*p += before;
	*len -= before + pad;
	return 0;
}

static int take_headers(struct h2c *c, const unsigned char *p, size_t len, unsigned flags, struct err *e)
{
	if (buf_put(&c->headers, p, len) < 0)
		return err_set(e, ERR_LIMIT, "the reply's headers exceed the ceiling of %d bytes",
		               H2C_HEADER_BYTES_MAX);
	c->in_headers = !(flags & FLAG_END_HEADERS);
	if (c->in_headers)
		return 0;
	if (read_header_block(c, e) < 0)
		return -1;
	return c->headers_end_stream ? end_stream(c, e) : 0;
}

static int answer_control(struct h2c *c, enum frame_type type, const unsigned char *p, size_t len, struct err *e)
{
	if (++c->n_control > H2C_CONTROL_MAX)
		return err_set(e, ERR_LIMIT, "more than %d control frames in one reply", H2C_CONTROL_MAX);
	put_frame_head(&c->out, type == FRAME_PING ? len : 0, type, FLAG_ACK, 0);
	if (type == FRAME_PING)
		buf_put(&c->out, p, len);
	return c->out.failed ? err_no_memory(e) : 0;
}

static int take_payload(struct h2c *c, unsigned type, unsigned flags, const unsigned char *p, size_t len, struct err *e)
{
	int rc;
	switch (type) {
	case FRAME_DATA:
		if (cut_padding(&p, &len, flags, false, e) < 0)
			return -1;
		rc = take_data(c, p, len, e);
		return rc == 0 && flags & FLAG_END_STREAM ? end_stream(c, e) : rc;
	case FRAME_HEADERS:
		if (cut_padding(&p, &len, flags, true, e) < 0)
			return -1;
		c->headers_end_stream = flags & FLAG_END_STREAM;
		return take_headers(c, p, len, flags, e);
	case FRAME_CONTINUATION:
		return take_headers(c, p, len, flags, e);
	case FRAME_RST_STREAM:
		if (len != 4)
			return err_set(e, ERR_PROTOCOL, "malformed HTTP/2 reset");
		return err_set(e, ERR_UNREACHABLE, "the peer resets the call (HTTP/2 error %u)", read_u32(p));
	case FRAME_SETTINGS:
		if (flags & FLAG_ACK ? len != 0 : len % 6 != 0)
			return err_set(e, ERR_PROTOCOL, "malformed HTTP/2 settings");
		c->saw_settings = true;
		return flags & FLAG_ACK ? 0 : answer_control(c, FRAME_SETTINGS, p, len, e);
	case FRAME_PING:
		if (len != 8)
			return err_set(e, ERR_PROTOCOL, "malformed HTTP/2 ping");
		return flags & FLAG_ACK ? 0 : answer_control(c, FRAME_PING, p, len, e);
	case FRAME_GOAWAY:
		if (len < 8)
			return err_set(e, ERR_PROTOCOL, "malformed HTTP/2 goaway");
		if ((read_u32(p) & 0x7fffffff) >= STREAM)
			return 0; // the stream may still complete
		return err_set_code(e, ERR_UNREACHABLE, (int)(read_u32(p + 4) & 0xffff),
		                    "the peer closes the connection (HTTP/2 error %u)", read_u32(p + 4));
	default:
		return 0; // WINDOW_UPDATE, and unknown types
	}
}

static int take_frame(struct h2c *c, size_t len, struct err *e)
{
	unsigned type = c->frame[3], flags = c->frame[4];
	uint32_t stream = read_u32(c->frame + 5) & 0x7fffffff;
	bool carries =
	        type == FRAME_DATA || type == FRAME_HEADERS || type == FRAME_PUSH_PROMISE || type == FRAME_CONTINUATION;
	if (!c->saw_settings && type != FRAME_SETTINGS)
		return err_set(e, ERR_PROTOCOL, "the peer does not speak HTTP/2");
	if (c->in_headers != (type == FRAME_CONTINUATION))
		return err_set(e, ERR_PROTOCOL, "HTTP/2 headers out of order");
	if (stream > STREAM)
		return carries ? err_set(e, ERR_PROTOCOL, "an HTTP/2 frame on an unknown stream") : 0;
	if (stream == 0 && (carries || type == FRAME_RST_STREAM))
		return err_set(e, ERR_PROTOCOL, "an HTTP/2 frame of type %u without a stream", type);
	if (stream == STREAM &&
	    (type == FRAME_SETTINGS || type == FRAME_PING || type == FRAME_GOAWAY || type == FRAME_PUSH_PROMISE))
		return err_set(e, ERR_PROTOCOL, "an HTTP/2 frame of type %u on a stream", type);
	return take_payload(c, type, flags, c->frame + FRAME_HEAD_BYTES, len, e);
}

// The length of the payload, from a head that is complete.
static size_t payload_of(const struct h2c *c)
{
	return read_u32(c->frame) >> 8;
}

int h2c_feed(struct h2c *c, const void *data, size_t len, struct err *e)
{
	const unsigned char *p = data;
	if (c->failed)
		return err_set(e, ERR_PROTOCOL, "the call has failed already");
	c->received += len;
	if (c->received > H2C_REPLY_BYTES_MAX) {
		c->failed = true;
		return err_set(e, ERR_LIMIT, "the frames of the reply exceed the ceiling of %d bytes",
		               H2C_REPLY_BYTES_MAX);
	}
	while (len > 0 && !c->done) {
		size_t payload = c->have < FRAME_HEAD_BYTES ? 0 : payload_of(c);
		size_t expected = FRAME_HEAD_BYTES + payload - c->have;
		size_t n = len < expected ? len : expected;
		memcpy(c->frame + c->have, p, n);
		c->have += n;
		p += n;
		len -= n;
		if (c->have < FRAME_HEAD_BYTES)
			break;
		payload = payload_of(c);
		int rc = 0;
		if (payload > H2C_FRAME_BYTES_MAX)
			rc = err_set(e, ERR_PROTOCOL,
			             c->saw_settings
			                     ? "an HTTP/2 frame of %zu bytes, the limit is %d"
			                     : "the peer does not speak HTTP/2 (frame of %zu bytes, the limit is %d)",
			             payload, H2C_FRAME_BYTES_MAX);
		else if (c->have == FRAME_HEAD_BYTES + payload) {
			c->have = 0;
			rc = take_frame(c, payload, e);
		}
		if (rc < 0) {
			c->failed = true;
			return -1;
		}
	}
	return c->done ? 1 : 0;
}
