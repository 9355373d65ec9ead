// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/page.h"

#include <strings.h>

#include "base/base.h"
#include "base/exposition.h"

#define TEXT_TYPE        "text/plain"
#define OPENMETRICS_TYPE "application/openmetrics-text"

const char *page_content_type(enum page_format format)
{
	return format == PAGE_OPENMETRICS ? OPENMETRICS_TYPE "; version=1.0.0; charset=utf-8" : EXPOSITION_CONTENT_TYPE;
}

// ---- the requested format ----

struct span {
	const char *p;
	size_t len;
};

static struct span trim(struct span s)
{
	while (s.len > 0 && (*s.p == ' ' || *s.p == '\t'))
		s.p++, s.len--;
	while (s.len > 0 && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
		s.len--;
	return s;
}

// Removes the piece before the next separator from `*rest` and trims it. False at the end.
static bool next_piece(struct span *rest, char separator, struct span *ret_piece)
{
	if (!rest->p)
		return false;
	const char *at = memchr(rest->p, separator, rest->len);
	size_t len = at ? (size_t)(at - rest->p) : rest->len;
	*ret_piece = trim((struct span){rest->p, len});
	*rest = at ? (struct span){at + 1, rest->len - len - 1} : (struct span){NULL, 0};
	return true;
}

static bool equals(struct span s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.p, text, s.len) == 0;
}

static bool begins_with(struct span s, const char *text)
{
	return s.len >= strlen(text) && strncasecmp(s.p, text, strlen(text)) == 0;
}

// One range of a list: its name, its q (1 if absent, 0 if invalid) and its version.
struct range {
	struct span name, version;
	double q;
};

static bool next_range(struct span *rest, struct range *ret_range)
{
	struct span item, parameter;
	if (!next_piece(rest, ',', &item))
		return false;
	*ret_range = (struct range){.name = {item.p, 0}, .version = {item.p, 0}, .q = 1};
	if (!next_piece(&item, ';', &ret_range->name))
		return true;
	while (next_piece(&item, ';', &parameter)) {
		if (begins_with(parameter, "version="))
			ret_range->version = (struct span){parameter.p + 8, parameter.len - 8};
		else if (begins_with(parameter, "q=") &&
		         (num_parse_f64(parameter.p + 2, parameter.len - 2, &ret_range->q, NULL) < 0 ||
		          ret_range->q < 0 || ret_range->q > 1))
			ret_range->q = 0;
	}
	return true;
}

enum page_format page_format_wanted(const char *accept)
{
	double q[PAGE_FORMAT__COUNT] = {0};
	struct span rest = {accept, accept ? strlen(accept) : 0};
	struct range r;
	while (next_range(&rest, &r)) {
		bool version = r.version.len == 0 || equals(r.version, "1.0.0") || equals(r.version, "0.0.1");
		bool any = equals(r.name, "*/*") || equals(r.name, "text/*");
		if (equals(r.name, OPENMETRICS_TYPE) && version && r.q > q[PAGE_OPENMETRICS])
			q[PAGE_OPENMETRICS] = r.q;
		else if ((equals(r.name, TEXT_TYPE) || any) && r.q > q[PAGE_TEXT])
			q[PAGE_TEXT] = r.q;
	}
	return q[PAGE_OPENMETRICS] > 0 && q[PAGE_OPENMETRICS] >= q[PAGE_TEXT] ? PAGE_OPENMETRICS : PAGE_TEXT;
}

bool page_gzip_wanted(const char *accept_encoding)
{
	struct span rest = {accept_encoding, accept_encoding ? strlen(accept_encoding) : 0};
	struct range r;
	double named = -1, any = 0;
	while (next_range(&rest, &r)) {
		if (equals(r.name, "gzip") || equals(r.name, "x-gzip"))
			named = r.q;
		else if (equals(r.name, "*"))
			any = r.q;
	}
	return named >= 0 ? named > 0 : any > 0;
}

// ---- the conversion to OpenMetrics ----

// Splits "# HELP name text" into the name and the rest.
static bool split_comment(struct span line, const char *kind, struct span *ret_name, struct span *ret_text)
{
	size_t n = strlen(kind);
	if (line.len <= n || memcmp(line.p, kind, n) != 0)
		return false;
	const char *name = line.p + n, *end = line.p + line.len;
	const char *blank = memchr(name, ' ', (size_t)(end - name));
	if (!blank)
		return false;
	*ret_name = (struct span){name, (size_t)(blank - name)};
	*ret_text = (struct span){blank + 1, (size_t)(end - blank - 1)};
	return true;
}

static void put_family(struct buf *out, struct span name, struct span type, struct span help)
{
	static const char total[] = "_total";
	size_t n = sizeof total - 1;
	const char *kind = NULL;
	if (equals(type, "counter") && name.len > n && memcmp(name.p + name.len - n, total, n) == 0)
		name.len -= n; // the family has no suffix, its samples have one
	else if (equals(type, "counter") || equals(type, "untyped"))
		kind = "unknown";
	buf_puts(out, "# TYPE ");
	buf_put(out, name.p, name.len);
	buf_putc(out, ' ');
	buf_put(out, kind ? kind : type.p, kind ? strlen(kind) : type.len);
	buf_puts(out, "\n# HELP ");
	buf_put(out, name.p, name.len);
	buf_putc(out, ' ');
	for (size_t i = 0; i < help.len; i++) { // OpenMetrics escapes quotes here too
		if (help.p[i] == '"')
			buf_putc(out, '\\');
		buf_putc(out, help.p[i]);
	}
	buf_putc(out, '\n');
}

// OpenMetrics requires the bound of a bucket to be a float: le="1" becomes le="1.0".
static void put_sample(struct buf *out, struct span line)
{
	static const char le[] = "le=\"";
	const char *at = memmem(line.p, line.len, le, sizeof le - 1);
	if (at && at > line.p && (at[-1] == '{' || at[-1] == ',')) {
		const char *digits = at + sizeof le - 1;
		const char *end = digits;
		while (*end >= '0' && *end <= '9') // the line's '"' or '\n' ends this
			end++;
		if (end > digits && *end == '"') {
			buf_put(out, line.p, (size_t)(end - line.p));
			buf_puts(out, ".0");
			line.len -= (size_t)(end - line.p);
			line.p = end;
		}
	}
	buf_put(out, line.p, line.len);
	buf_putc(out, '\n');
}

void openmetrics_convert(struct buf *out, const char *text, size_t len)
{
	struct span help_name = {NULL, 0}, help = {NULL, 0}, name, type;
	const char *end = text + len;
	for (const char *p = text, *stop; p < end; p = stop + 1) {
		stop = memchr(p, '\n', (size_t)(end - p));
		if (!stop)
			return; // base/exposition terminates every line
		struct span line = {p, (size_t)(stop - p)};
		if (line.len > 0 && line.p[0] != '#')
			put_sample(out, line);
		else if (split_comment(line, "# TYPE ", &name, &type))
			put_family(out, name, type, help_name.p ? help : (struct span){"", 0});
		else
			(void)split_comment(line, "# HELP ", &help_name, &help); // kept until its TYPE
	}
}

// ---- gzip ----

// Optimized for speed, with a window of 8 KiB: lines repeat the labels of the lines just before them.
#define LEVEL        1
#define WINDOW_BITS  (16 + 13) // 16: with the header and trailer of gzip
#define MEMORY_LEVEL 6
#define CHUNK_BYTES  4096

// Replaces the page in p->out by its compressed form.
static int compress_page(struct page *p, struct err *e)
{
	unsigned char chunk[CHUNK_BYTES];
	z_stream *z = &p->stream;
	int rc = p->has_stream ? deflateReset(z)
	                       : deflateInit2(z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
	if (rc != Z_OK)
		return err_set(e, ERR_INTERNAL, "gzip: out of memory");
	p->has_stream = true;
	assert(p->out.len <= UINT32_MAX);
	buf_reset(&p->text);
	// zlib only reads the text; its type has no const unless ZLIB_CONST is defined.
	z->next_in = (unsigned char *)(uintptr_t)buf_str(&p->out);
	z->avail_in = (uInt)p->out.len;
	do {
		z->next_out = chunk;
		z->avail_out = sizeof chunk;
		rc = deflate(z, Z_FINISH);
		assert(rc != Z_STREAM_ERROR);
		buf_put(&p->text, chunk, sizeof chunk - z->avail_out);
	} while (z->avail_out == 0);
	struct buf plain = p->out;
	p->out = p->text;
	p->text = plain;
	return p->out.failed ? err_set(e, ERR_LIMIT, "gzip: the page exceeds its ceiling") : 0;
}

// ---- the page ----

void page_init(struct page *p, size_t max_bytes)
{
	memset(p, 0, sizeof *p);
	buf_init(&p->text, max_bytes);
	buf_init(&p->out, max_bytes);
}

void page_done(struct page *p)
{
	if (p->has_stream)
		deflateEnd(&p->stream);
	buf_done(&p->text);
	buf_done(&p->out);
}

struct buf *page_text(struct page *p, enum page_format format)
{
	struct buf *text = format == PAGE_TEXT ? &p->out : &p->text;
	buf_reset(text);
	return text;
}

int page_make(struct page *p, enum page_format format, bool gzip, const struct buf *self, struct err *e)
{
	bool is_too_long = self->failed;
	if (format == PAGE_OPENMETRICS) {
		is_too_long |= p->text.failed;
		buf_reset(&p->out);
		openmetrics_convert(&p->out, buf_str(&p->text), p->text.len);
		openmetrics_convert(&p->out, buf_str(self), self->len);
		buf_puts(&p->out, "# EOF\n");
	} else {
		buf_put(&p->out, buf_str(self), self->len);
	}
	if (is_too_long || p->out.failed)
		return err_set(e, ERR_LIMIT, "the page exceeds its ceiling of %zu bytes", p->out.max);
	return gzip ? compress_page(p, e) : 0;
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

// The name of the family or sample in a line.
static struct span name_of(struct span line)
{
	struct span name, text;
	if (split_comment(line, "# HELP ", &name, &text) || split_comment(line, "# TYPE ", &name, &text))
		return name;
	size_t n = 0;
	while (n < line.len && line.p[n] != ' ' && line.p[n] != '{')
		n++;
	return (struct span){line.p, n};
}

static bool is_listed(const char *list, struct span name)
{
	for (const char *item = list; *item;) {
		size_t n = strcspn(item, ",");
		if (n == name.len && memcmp(item, name.p, n) == 0)
			return true;
		item += n + (item[n] == ',');
	}
	return false;
}

int page_keep_families(struct page *p, const char *list, struct err *e)
{
	const char *at = buf_str(&p->out), *end = at + p->out.len;
	struct span last = {at, 0};
	bool keeps = false;
	buf_reset(&p->text);
	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at)), *next = nl ? nl + 1 : end;
		struct span name = name_of((struct span){at, (size_t)(next - at)});
		if (name.len != last.len || memcmp(name.p, last.p, name.len) != 0)
			keeps = is_listed(list, name);
		last = name;
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
