// SPDX-License-Identifier: Apache-2.0
#include "exporter/page.h"

#include "base/err.h"

void page_init(struct page *p, size_t max_bytes)
{
	for (int f = 0; f < PAGE_FORMAT__COUNT; f++) {
		p->forms[f].round = 0;
		gzip_page_init(&p->forms[f].gzip, max_bytes);
	}
	buf_init(&p->tail, max_bytes);
	buf_init(&p->out, max_bytes);
}

void page_done(struct page *p)
{
	for (int f = 0; f < PAGE_FORMAT__COUNT; f++)
		gzip_page_done(&p->forms[f].gzip);
	buf_done(&p->tail);
	buf_done(&p->out);
}

static void put_front(struct page *p, enum page_format format, const struct buf *text)
{
	buf_reset(&p->out);
	if (format == PAGE_OPENMETRICS)
		openmetrics_convert(&p->out, buf_str(text), text->len);
	else
		buf_put(&p->out, buf_str(text), text->len);
}

static int compress_front(struct page *p, enum page_format format, uint64_t round, const struct buf *text,
                          struct err *e)
{
	struct page_form *form = &p->forms[format];
	if (form->round == round)
		return 0;
	form->round = 0;
	put_front(p, format, text); // only on the way
	if (p->out.failed)
		return err_set(e, ERR_LIMIT, "the page passes its ceiling of %zu bytes", p->out.max);
	if (gzip_page_set_front(&form->gzip, buf_str(&p->out), p->out.len, e) < 0)
		return -1;
	form->round = round;
	return 0;
}

int page_make(struct page *p, enum page_format format, bool gzip, uint64_t round, const struct buf *text,
              const struct buf *self, struct err *e)
{
	const struct buf *tail = self;
	if (format == PAGE_OPENMETRICS) {
		buf_reset(&p->tail);
		openmetrics_convert(&p->tail, buf_str(self), self->len);
		openmetrics_end(&p->tail);
		tail = &p->tail;
	}
	if (text->failed || self->failed || tail->failed)
		return err_set(e, ERR_LIMIT, "the page passes its ceiling of %zu bytes", p->out.max);
	if (gzip) {
		if (compress_front(p, format, round, text, e) < 0)
			return -1;
		buf_reset(&p->out);
		return gzip_page_finish(&p->forms[format].gzip, buf_str(tail), tail->len, &p->out, e);
	}
	put_front(p, format, text);
	buf_put(&p->out, buf_str(tail), tail->len);
	return p->out.failed ? err_set(e, ERR_LIMIT, "the page passes its ceiling of %zu bytes", p->out.max) : 0;
}
