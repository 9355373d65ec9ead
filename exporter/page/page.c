// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/page.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"

// ---- gzip ----

// Optimized for speed, with a window of 8 KiB: lines repeat the labels of the lines just before them.
#define LEVEL        1
#define WINDOW_BITS  (-13) // negative: no zlib header
#define MEMORY_LEVEL 6
#define CHUNK_BYTES  4096

// Prepares `g`. `max_bytes` is the limit on the compressed front.
static void gzip_page_init(struct gzip_page *g, size_t max_bytes)
{
	memset(g, 0, sizeof *g);
	buf_init(&g->front, max_bytes);
}

static void gzip_page_done(struct gzip_page *g)
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

// Compresses text[0..len) as the front of the following pages.
static int gzip_page_set_front(struct gzip_page *g, const char *text, size_t len, struct err *e)
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

// Appends the front and the compressed tail[0..len) to `out`.
static int gzip_page_finish(struct gzip_page *g, const char *tail, size_t len, struct buf *out, struct err *e)
{
	buf_put(out, g->front.data, g->front.len);
	if (compress_part(g, tail, len, Z_FINISH, out, e) < 0)
		return -1;
	uLong crc = crc32(0, (const unsigned char *)tail, (uInt)len);
	put_le32(out, (uint32_t)crc32_combine(g->crc, crc, (z_off_t)len));
	put_le32(out, (uint32_t)(g->front_len + len));
	return out->failed ? err_set(e, ERR_LIMIT, "gzip: the page exceeds its ceiling") : 0;
}

void page_init(struct page *p, size_t max_bytes)
{
	for (int f = 0; f < PAGE_FORMAT__COUNT; f++) {
		p->forms[f].round = 0;
		gzip_page_init(&p->forms[f].gzip, max_bytes);
	}
	buf_init(&p->text, max_bytes);
	buf_init(&p->tail, max_bytes);
	buf_init(&p->out, max_bytes);
}

void page_done(struct page *p)
{
	for (int f = 0; f < PAGE_FORMAT__COUNT; f++)
		gzip_page_done(&p->forms[f].gzip);
	buf_done(&p->text);
	buf_done(&p->tail);
	buf_done(&p->out);
}

static struct buf *text_of(struct page *p, enum page_format format, bool gzip)
{
	return format == PAGE_TEXT && !gzip ? &p->out : &p->text;
}

struct buf *page_text(struct page *p, enum page_format format, bool gzip)
{
	struct buf *text = text_of(p, format, gzip);
	buf_reset(text);
	return text;
}

// Writes the text of the round to p->out in OpenMetrics.
static const struct buf *convert_front(struct page *p)
{
	buf_reset(&p->out);
	openmetrics_convert(&p->out, buf_str(&p->text), p->text.len);
	return &p->out;
}

static int compress_front(struct page *p, enum page_format format, uint64_t round, struct err *e)
{
	struct page_form *form = &p->forms[format];
	if (form->round == round)
		return 0;
	form->round = 0;
	const struct buf *front = format == PAGE_OPENMETRICS ? convert_front(p) : &p->text;
	if (front->failed)
		return err_set(e, ERR_LIMIT, "the page exceeds its ceiling of %zu bytes", front->max);
	if (gzip_page_set_front(&form->gzip, buf_str(front), front->len, e) < 0)
		return -1;
	form->round = round;
	return 0;
}

int page_make(struct page *p, enum page_format format, bool gzip, uint64_t round, const struct buf *self, struct err *e)
{
	const struct buf *tail = self;
	if (format == PAGE_OPENMETRICS) {
		buf_reset(&p->tail);
		openmetrics_convert(&p->tail, buf_str(self), self->len);
		openmetrics_end(&p->tail);
		tail = &p->tail;
	}
	if (self->failed || tail->failed || text_of(p, format, gzip)->failed)
		return err_set(e, ERR_LIMIT, "the page exceeds its ceiling of %zu bytes", p->out.max);
	if (gzip) {
		if (compress_front(p, format, round, e) < 0)
			return -1;
		buf_reset(&p->out);
		return gzip_page_finish(&p->forms[format].gzip, buf_str(tail), tail->len, &p->out, e);
	}
	if (format == PAGE_OPENMETRICS)
		convert_front(p);
	buf_put(&p->out, buf_str(tail), tail->len);
	return p->out.failed ? err_set(e, ERR_LIMIT, "the page exceeds its ceiling of %zu bytes", p->out.max) : 0;
}

void page_lend(struct page *p, struct buf *ret_text)
{
	*ret_text = p->out;
	buf_init(&p->out, ret_text->max);
}

void page_take_back(struct page *p, struct buf *text)
{
	if (p->out.data)
		buf_done(text);
	else
		p->out = *text;
}

// ---- some families only ----

// The name of the family or sample in the line text[0..len).
static size_t name_of(const char *text, size_t len, const char **ret_name)
{
	static const char *const heads[] = {"# HELP ", "# TYPE "};
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		if (len > strlen(heads[i]) && memcmp(text, heads[i], strlen(heads[i])) == 0) {
			text += strlen(heads[i]);
			len -= strlen(heads[i]);
		}
	size_t n = 0;
	while (n < len && text[n] != ' ' && text[n] != '{')
		n++;
	*ret_name = text;
	return n;
}

static bool is_listed(const char *list, const char *name, size_t len)
{
	for (const char *item = list; *item;) {
		size_t n = strcspn(item, ",");
		if (n == len && memcmp(item, name, n) == 0)
			return true;
		item += n + (item[n] == ',');
	}
	return false;
}

int page_keep_families(struct page *p, const char *list, struct err *e)
{
	const char *at = buf_str(&p->out), *end = at + p->out.len, *name, *last = at;
	size_t last_len = 0;
	bool keeps = false;
	buf_reset(&p->text);
	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at)), *next = nl ? nl + 1 : end;
		size_t len = name_of(at, (size_t)(next - at), &name);
		if (len != last_len || memcmp(name, last, len) != 0)
			keeps = is_listed(list, name, len);
		last = name;
		last_len = len;
		if (keeps)
			buf_put(&p->text, at, (size_t)(next - at));
		at = next;
	}
	if (p->text.failed)
		return err_no_memory(e);
	buf_reset(&p->out);
	buf_put(&p->out, buf_str(&p->text), p->text.len);
	return 0;
}
