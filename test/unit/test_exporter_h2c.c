// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the one gRPC call is sent as the wire wants it, and every reply ends in a message or an error that
// says why, however the bytes are cut.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "exporter/kubelet/h2c.h"

#define PATH         "/v1.PodResourcesLister/List"
#define SETTINGS     "000000 04 00 00000000 "
#define HEADERS      "000001 01 04 00000001 88 "                        // :status 200
#define ABC          "000008 00 00 00000001 00 00000003 616263 "        // one message, no END_STREAM
#define TRAILERS     "00000c 01 05 00000001 00 88 9acac8b21234da8f 81 " // grpc-status as Huffman, its value follows
#define PLAIN_STATUS "00000f 01 05 00000001 00 0b 677270632d737461747573 01 "

static size_t unhex(const char *hex, unsigned char *out, size_t max)
{
	size_t n = 0, nibbles = 0;
	for (; *hex; hex++) {
		static const char digits[] = "0123456789abcdef";
		const char *at = strchr(digits, *hex);
		if (*hex == ' ')
			continue;
		assert_non_null(at);
		assert_true(n < max);
		out[n] = (unsigned char)(nibbles % 2 ? out[n] << 4 | (at - digits) : at - digits);
		n += nibbles++ % 2;
	}
	assert_true(nibbles % 2 == 0);
	return n;
}

static const struct {
	const char *name, *hex;
	int rc; // of the last byte
	enum err_kind kind;
	int code;
	const char *want; // the message, or a part of the error
} cases[] = {
        {"a whole reply", SETTINGS HEADERS ABC TRAILERS "07", 1, ERR_NONE, 0, "abc"}, // 0 is 00000 + 111
        {"trailers without Huffman", SETTINGS HEADERS ABC PLAIN_STATUS "30", 1, ERR_NONE, 0, "abc"},
        {"an empty message", SETTINGS HEADERS "000005 00 00 00000001 0000000000 " TRAILERS "07", 1, ERR_NONE, 0, ""},
        {"a message in two frames",
         SETTINGS HEADERS "000003 00 00 00000001 000000 000005 00 00 00000001 0003616263 " TRAILERS "07", 1, ERR_NONE,
         0, "abc"},
        {"padding", SETTINGS HEADERS "00000b 00 08 00000001 02 00 00000003 616263 0000 " TRAILERS "07", 1, ERR_NONE, 0,
         "abc"},
        {"a priority in HEADERS", SETTINGS "000006 01 24 00000001 0000000010 88 " ABC TRAILERS "07", 1, ERR_NONE, 0,
         "abc"},
        {"CONTINUATION", SETTINGS "000001 01 00 00000001 88 000001 09 04 00000001 88 " ABC TRAILERS "07", 1, ERR_NONE,
         0, "abc"},
        {"a frame of a kind to come", SETTINGS HEADERS "000002 7f ff 00000000 0102 " ABC TRAILERS "07", 1, ERR_NONE, 0,
         "abc"},
        {"GOAWAY that spares our stream", SETTINGS HEADERS "000008 07 00 00000000 7fffffff 00000000 " ABC TRAILERS "07",
         1, ERR_NONE, 0, "abc"},
        {"PUSH_PROMISE, which is refused", SETTINGS HEADERS "000004 05 04 00000001 00000002 " ABC TRAILERS "07", 1,
         ERR_NONE, 0, "abc"},
        {"a new table size", SETTINGS "000002 01 04 00000001 20 88 " ABC TRAILERS "07", 1, ERR_NONE, 0, "abc"},
        // Errors reported by gRPC.
        {"status 8", SETTINGS PLAIN_STATUS "38", -1, ERR_THROTTLED, 8, "gRPC status 8, RESOURCE_EXHAUSTED"},
        {"status 8 as Huffman", SETTINGS TRAILERS "7b", -1, ERR_THROTTLED, 8, "gRPC status 8"},
        {"status 3 as Huffman", SETTINGS TRAILERS "67", -1, ERR_REJECTED, 3, "gRPC status 3"},
        {"status 14 as Huffman", SETTINGS "00000d 01 05 00000001 00 88 9acac8b21234da8f 82 0b5f", -1, ERR_UNREACHABLE,
         14, "gRPC status 14"},
        {"a status after a message", SETTINGS HEADERS ABC PLAIN_STATUS "35", -1, ERR_NOT_FOUND, 5, "gRPC status 5"},
        {"a status to come", SETTINGS "000010 01 05 00000001 00 0b 677270632d737461747573 02 3939", -1, ERR_SERVER, 99,
         "gRPC status 99"},
        // Faults of the peer.
        {"HTTP/1", "485454502f312e3120343030", -1, ERR_PROTOCOL, 0, "does not speak HTTP/2"},
        {"no SETTINGS first", HEADERS, -1, ERR_PROTOCOL, 0, "does not speak HTTP/2"},
        {"DATA that ends the stream: the outcome of the call is missing",
         SETTINGS HEADERS "000005 00 01 00000001 0000000000", -1, ERR_PROTOCOL, 0, "without a gRPC status"},
        {"trailers without a status", SETTINGS HEADERS ABC "000001 01 05 00000001 88", -1, ERR_PROTOCOL, 0,
         "without a gRPC status"},
        {"a status that is not a number", SETTINGS HEADERS ABC PLAIN_STATUS "61", -1, ERR_PROTOCOL, 0,
         "without a gRPC status"},
        {"an end without a message", SETTINGS "000001 01 05 00000001 88", -1, ERR_PROTOCOL, 0, "without a complete"},
        {"an end inside a message", SETTINGS HEADERS "000006 00 01 00000001 00 00000003 61", -1, ERR_PROTOCOL, 0,
         "without a complete"},
        {"two messages", SETTINGS HEADERS "00000b 00 01 00000001 00 00000001 61 00 00000000", -1, ERR_PROTOCOL, 0,
         "more than one"},
        {"a compressed message", SETTINGS HEADERS "000005 00 00 00000001 01 00000003", -1, ERR_PROTOCOL, 0,
         "compressed"},
        {"a message past the ceiling", SETTINGS HEADERS "000005 00 00 00000001 00 01000001", -1, ERR_LIMIT, 0,
         "a reply of 16777217 bytes, the ceiling is 16777216"},
        {"a frame that is too large", SETTINGS "004001 00 00 00000001", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"RST_STREAM", SETTINGS "000004 03 00 00000001 00000007", -1, ERR_UNREACHABLE, 0, "error 7"},
        {"GOAWAY", SETTINGS "000008 07 00 00000000 00000000 0000000b", -1, ERR_UNREACHABLE, 11, "error 11"},
        {"padding past the frame", SETTINGS "000002 00 08 00000001 05 00", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"padding without its length", SETTINGS "000000 00 08 00000001", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"DATA without a stream", SETTINGS "000000 00 00 00000000", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"a stream of the peer's own", SETTINGS "000000 00 00 00000002", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"CONTINUATION alone", SETTINGS "000001 09 04 00000001 88", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"a frame inside headers, not CONTINUATION", SETTINGS "000001 01 00 00000001 88 000000 00 00 00000001", -1,
         ERR_PROTOCOL, 0, "HTTP/2"},
        {"a header cut off", SETTINGS "000002 01 04 00000001 0005", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"a header number without end", SETTINGS "000006 01 04 00000001 ffffffffffff", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"SETTINGS of a wrong length", "000001 04 00 00000000 00", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"PING of a wrong length", SETTINGS "000001 06 00 00000000 00", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"SETTINGS on a stream", SETTINGS "000000 04 00 00000001", -1, ERR_PROTOCOL, 0, "HTTP/2"},
        {"nothing yet", SETTINGS HEADERS ABC, 0, ERR_NONE, 0, NULL},
};

static void check_case(size_t i, size_t piece)
{
	unsigned char bytes[256];
	size_t len = unhex(cases[i].hex, bytes, sizeof bytes);
	struct err e = {.kind = ERR_NONE};
	struct h2c *c = malloc(sizeof *c);
	int rc = 0;
	assert_non_null(c);
	assert_int_equal(h2c_init(c, PATH, H2C_MESSAGE_BYTES_MAX, &e), 0);
	for (size_t at = 0; rc == 0 && at < len; at += piece)
		rc = h2c_feed(c, bytes + at, len - at < piece ? len - at : piece, &e);
	if (rc != cases[i].rc || e.kind != cases[i].kind)
		fail_msg("%s in pieces of %zu: %d %s", cases[i].name, piece, rc, rc < 0 ? e.msg : "");
	if (rc > 0)
		assert_string_equal(buf_str(&c->message), cases[i].want);
	if (rc < 0) {
		assert_int_equal(e.code, cases[i].code);
		if (!strstr(e.msg, cases[i].want))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].name, e.msg, cases[i].want);
	}
	h2c_done(c);
	free(c);
}

static void every_reply_ends_as_it_must(void **state)
{
	static const size_t pieces[] = {1, 2, 3, 7, 1000};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; k++) {
			// libnghttp2 permits 8 CONTINUATION frames, and counts one for each piece of a frame's head.
			if (pieces[k] > 1 || !strstr(cases[i].name, "CONTINUATION"))
				check_case(i, pieces[k]);
		}
}

// What a server reads.
struct request {
	struct buf headers; // "name: value\n"
	size_t body_len;
	bool is_complete;
};

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	struct request *r = arg;
	return buf_printf(&r->headers, "%.*s: %.*s\n", (int)name_len, (const char *)name, (int)value_len,
	                  (const char *)value);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t len, void *arg)
{
	struct request *r = arg;
	r->body_len += len;
	for (size_t i = 0; i < len; i++)
		assert_int_equal(data[i], 0);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct request *r = arg;
	r->is_complete |= frame->hd.type == NGHTTP2_DATA && frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	return 0;
}

static void request_is_the_one_that_the_kubelet_expects(void **state)
{
	(void)state;
	struct request r = {.body_len = 0};
	struct err e;
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *server;
	struct h2c *c = malloc(sizeof *c);
	assert_non_null(c);
	buf_init(&r.headers, 1024);
	assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	assert_int_equal(nghttp2_session_server_new(&server, callbacks, &r), 0);
	assert_int_equal(h2c_init(c, PATH, H2C_MESSAGE_BYTES_MAX, &e), 0);
	assert_int_equal(nghttp2_session_mem_recv(server, (const uint8_t *)c->out.data, c->out.len), c->out.len);
	assert_string_equal(buf_str(&r.headers), ":method: POST\n:scheme: http\n:path: " PATH
	                                         "\n:authority: localhost\ncontent-type: application/grpc\n"
	                                         "te: trailers\n");
	assert_int_equal(r.body_len, 5);
	assert_true(r.is_complete);
	nghttp2_session_del(server);
	nghttp2_session_callbacks_del(callbacks);
	buf_done(&r.headers);
	h2c_done(c);
	free(c);
}

static void settings_and_pings_are_answered_up_to_a_ceiling(void **state)
{
	(void)state;
	unsigned char bytes[64];
	struct err e = {.kind = ERR_NONE};
	struct h2c *c = malloc(sizeof *c);
	assert_non_null(c);
	assert_int_equal(h2c_init(c, PATH, 100, &e), 0);
	buf_reset(&c->out);
	size_t n = unhex(SETTINGS "000008 06 00 00000000 0102030405060708", bytes, sizeof bytes);
	assert_int_equal(h2c_feed(c, bytes, n, &e), 0);
	unsigned char want[64];
	size_t n_want = unhex("000000 04 01 00000000 000008 06 01 00000000 0102030405060708", want, sizeof want);
	assert_int_equal(c->out.len, n_want);
	assert_memory_equal(c->out.data, want, n_want);
	int rc = 0;
	for (int i = 0; rc == 0 && i < H2C_CONTROL_MAX; i++)
		rc = h2c_feed(c, bytes, n, &e);
	assert_int_equal(rc, -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_int_equal(h2c_feed(c, bytes, n, &e), -1); // and stays failed
	h2c_done(c);
	free(c);
}

// WINDOW_UPDATE, PING answers and unknown frames need no reply, and empty DATA and CONTINUATION add nothing.
static void frames_without_content_are_taken_up_to_a_ceiling(void **state)
{
	(void)state;
	static const char *const starts[] = {SETTINGS, SETTINGS HEADERS, SETTINGS "000001 01 00 00000001 88 "};
	static const char *const endless[] = {"000004 08 00 00000000 00000001", "000000 00 00 00000001",
	                                      "000000 09 00 00000001"};
	for (size_t i = 0; i < sizeof endless / sizeof endless[0]; i++) {
		unsigned char start[64], frame[64];
		struct err e = {.kind = ERR_NONE};
		struct h2c *c = malloc(sizeof *c);
		assert_non_null(c);
		assert_int_equal(h2c_init(c, PATH, 100, &e), 0);
		size_t n = unhex(starts[i], start, sizeof start), len = unhex(endless[i], frame, sizeof frame);
		int rc = h2c_feed(c, start, n, &e);
		for (size_t k = 0; rc == 0 && k <= H2C_REPLY_BYTES_MAX; k += len)
			rc = h2c_feed(c, frame, len, &e);
		assert_int_equal(rc, -1);
		assert_int_equal(e.kind, ERR_LIMIT);
		assert_int_equal(h2c_feed(c, frame, len, &e), -1);
		h2c_done(c);
		free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_reply_ends_as_it_must),
	        cmocka_unit_test(request_is_the_one_that_the_kubelet_expects),
	        cmocka_unit_test(settings_and_pings_are_answered_up_to_a_ceiling),
	        cmocka_unit_test(frames_without_content_are_taken_up_to_a_ceiling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
