// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/page.h"

#include <string.h>

#include "base/err.h"

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
		return err_set(e, ERR_INTERNAL, "out of memory");
	buf_reset(&p->out);
	buf_put(&p->out, buf_str(&p->text), p->text.len);
	return 0;
}
