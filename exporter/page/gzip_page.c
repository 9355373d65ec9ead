// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/gzip_page.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"

// Optimized for speed, with a window of 8 KiB: lines repeat the labels of the lines just before them.
#define LEVEL        1
#define WINDOW_BITS  (-13) // negative: no zlib header
#define MEMORY_LEVEL 6
#define CHUNK_BYTES  4096

void gzip_page_init(struct gzip_page *g, size_t max_bytes)
{
	memset(g, 0, sizeof *g);
	buf_init(&g->front, max_bytes);
}

void gzip_page_done(struct gzip_page *g)
{
	if (g->open)
		deflateEnd(&g->stream);
	buf_done(&g->front);
	g->open = false;
}

// Compresses `text` from a reset state, so that the output can follow any byte boundary.
static int compress_part(struct gzip_page *g, const char *text, size_t len, int flush, struct buf *out, struct err *e)
{
	unsigned char chunk[CHUNK_BYTES];
	z_stream *z = &g->stream;
	int rc = g->open ? deflateReset(z)
	                 : deflateInit2(z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
	if (rc != Z_OK)
		return err_set(e, ERR_INTERNAL, "gzip: out of memory");
	g->open = true;
	assert(len <= UINT32_MAX);
	// zlib only reads the text; its type has no const unless ZLIB_CONST is defined.
	z->next_in = (unsigned char *)(uintptr_t)text;
	z->avail_in = (uInt)len;
	do {
		z->next_out = chunk;
		z->avail_out = sizeof chunk;
		rc = deflate(z, flush);
		assert(rc != Z_STREAM_ERROR);
		buf_put(out, chunk, sizeof chunk - z->avail_out);
	} while (z->avail_out == 0);
	return out->failed ? err_set(e, ERR_LIMIT, "gzip: the page exceeds its ceiling") : 0;
}

int gzip_page_set_front(struct gzip_page *g, const char *text, size_t len, struct err *e)
{
	// Magic, deflate, no flags, no time, fastest, Unix.
	static const unsigned char header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3};
	buf_reset(&g->front);
	buf_put(&g->front, header, sizeof header);
	g->crc = crc32(0, (const unsigned char *)text, (uInt)len);
	g->front_len = len;
	// A full flush ends at a byte boundary, and later output does not refer to earlier text.
	return compress_part(g, text, len, Z_FULL_FLUSH, &g->front, e);
}

static void put_le32(struct buf *b, uint32_t v)
{
	const unsigned char bytes[] = {(unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16),
	                               (unsigned char)(v >> 24)};
	buf_put(b, bytes, sizeof bytes);
}

int gzip_page_finish(struct gzip_page *g, const char *tail, size_t len, struct buf *out, struct err *e)
{
	buf_put(out, g->front.data, g->front.len);
	if (compress_part(g, tail, len, Z_FINISH, out, e) < 0)
		return -1;
	uLong crc = crc32(0, (const unsigned char *)tail, (uInt)len);
	put_le32(out, (uint32_t)crc32_combine(g->crc, crc, (z_off_t)len));
	put_le32(out, (uint32_t)(g->front_len + len));
	return out->failed ? err_set(e, ERR_LIMIT, "gzip: the page exceeds its ceiling") : 0;
}
