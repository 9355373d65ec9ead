// SPDX-License-Identifier: Apache-2.0
// The server's request reader: a head, then its chunked body fed in two pieces, which must give what one piece gives.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/http/http_parse.h"
#include "base/http/http_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BODY_MAX 4096

struct outcome {
	int status;
	enum http_chunk_state state;
	size_t used;
	struct buf body;
};

// Feeds data[0..len) cut at `cut`.
static struct outcome decode(const char *data, size_t len, size_t cut)
{
	struct http_chunks c = {0};
	struct outcome o = {0};
	size_t used = 0;
	buf_init(&o.body, BODY_MAX);
	o.status = http_chunks_feed(&c, data, cut, &used, &o.body);
	o.used = used;
	assert(used <= cut);
	if (o.status == 0 && c.state != HTTP_CHUNK_DONE) {
		assert(used == cut);
		o.status = http_chunks_feed(&c, data + cut, len - cut, &used, &o.body);
		o.used += used;
	}
	o.state = c.state;
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 16384)
		return 0;
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	const char *end = strstr(text, "\r\n\r\n");
	size_t head_len = end ? (size_t)(end - text) + 4 : size;

	const char *rest = (const char *)data + head_len;
	size_t rest_len = size - head_len;
	struct outcome whole = decode(rest, rest_len, rest_len), split = decode(rest, rest_len, rest_len / 2);
	assert(whole.status == split.status);
	if (whole.status == 0) {
		assert(whole.state == split.state && whole.used == split.used && whole.body.len == split.body.len);
		assert(whole.body.len == 0 || memcmp(whole.body.data, split.body.data, whole.body.len) == 0);
	}
	assert(whole.body.len <= BODY_MAX);
	buf_done(&whole.body);
	buf_done(&split.body);

	struct http_head head;
	const char *why;
	char *alone = malloc(head_len + 1); // so that a read past the head's end is seen
	if (alone) {
		memcpy(alone, text, head_len);
		int status = http_head_parse(alone, head_len, &head, &why);
		assert(status == 0 || (status >= 400 && status <= 599 && why[0]));
		if (status == 0) {
			assert(http_is_token(head.method, strlen(head.method)) && head.path[0]);
			assert(!(head.chunked && head.content_length));
			for (size_t i = 0; i < head.n_fields; i++)
				assert(http_head_field(&head, head.fields[i].name));
			const char *retry = http_head_field(&head, "Retry-After");
			if (retry) {
				int64_t ms = http_parse_retry_after_ms(retry, strlen(retry), 1767603600);
				assert(ms >= 0 && ms <= HTTP_RETRY_AFTER_MAX_MS);
			}
		}
	}
	free(alone);
	free(text);
	return 0;
}
