// SPDX-License-Identifier: Apache-2.0
#include "controller/span_batch.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

// Optimized for speed and memory: 26 KiB of state, and a window of 4 KiB, which holds the tick before.
#define LEVEL        1
#define WINDOW_BITS  (16 + 12) // 16: with the header and the checksum of gzip
#define MEMORY_LEVEL 3
#define PENDING      (8 * 1024) // bytes that zlib may hold back, at most
#define ENVELOPE     (4 * 1024) // at most
#define CHUNK_BYTES  1024
// A tick that cannot be compressed grows by 5 bytes for each block of it.
_Static_assert(SPAN_BATCH_FULL_BYTES + SPAN_BATCH_TICK_BYTES_MAX + 2048 + PENDING + ENVELOPE <= SPAN_BATCH_BYTES_MAX,
               "what was added always fits");

int span_batch_init(struct span_batch *b, const struct otlp_envelope *envelope, struct err *e)
{
	memset(b, 0, sizeof *b);
	b->envelope = *envelope;
	buf_init(&b->text, SPAN_BATCH_TICK_BYTES_MAX);
	buf_init(&b->out, SPAN_BATCH_BYTES_MAX);
	if (deflateInit2(&b->stream, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(e, ERR_INTERNAL, "out of memory");
	// A buffer that grows step by step leaves holes in the heap.
	return buf_reserve(&b->out, SPAN_BATCH_USUAL_BYTES) < 0 ? err_set(e, ERR_INTERNAL, "out of memory") : 0;
}

void span_batch_done(struct span_batch *b)
{
	deflateEnd(&b->stream);
	buf_done(&b->text);
	buf_done(&b->out);
}

// Compresses text[0..len) behind what is in b->out.
static void compress_text(struct span_batch *b, const char *text, size_t len, int flush)
{
	unsigned char chunk[CHUNK_BYTES];
	z_stream *z = &b->stream;
	// zlib only reads the text; its type has no const unless ZLIB_CONST is defined.
	z->next_in = (unsigned char *)(uintptr_t)text;
	z->avail_in = (uInt)len;
	do {
		z->next_out = chunk;
		z->avail_out = sizeof chunk;
		int rc = deflate(z, flush);
		assert(rc != Z_STREAM_ERROR);
		(void)rc;
		buf_put(&b->out, chunk, sizeof chunk - z->avail_out);
	} while (z->avail_out == 0);
}

static void begin(struct span_batch *b)
{
	struct buf head;
	buf_init(&head, ENVELOPE);
	deflateReset(&b->stream);
	json_write_init(&b->writer, &head, 0);
	otlp_envelope_begin(&b->writer, &b->envelope);
	compress_text(b, buf_str(&head), head.len, Z_NO_FLUSH);
	buf_done(&head);
}

bool span_batch_is_full(const struct span_batch *b)
{
	return b->out.len >= SPAN_BATCH_FULL_BYTES;
}

bool span_batch_add(struct span_batch *b, size_t n)
{
	bool fits = !b->text.failed && !span_batch_is_full(b);
	if (fits) {
		if (b->n_spans == 0)
			begin(b);
		else
			compress_text(b, ",", 1, Z_NO_FLUSH);
		compress_text(b, buf_str(&b->text), b->text.len, Z_NO_FLUSH);
		b->n_spans += n;
	}
	buf_reset(&b->text);
	return fits;
}

size_t span_batch_take(struct span_batch *b, struct buf *body)
{
	struct buf tail, spare = *body;
	size_t n = b->n_spans;
	assert(n > 0);
	buf_init(&tail, ENVELOPE);
	b->writer.out = &tail;
	otlp_envelope_end(&b->writer, &b->envelope);
	compress_text(b, buf_str(&tail), tail.len, Z_FINISH);
	buf_done(&tail);
	assert(!b->out.failed);
	*body = b->out;
	b->out = spare;
	buf_reset(&b->out);
	b->n_spans = 0;
	return n;
}
