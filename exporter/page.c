// SPDX-License-Identifier: Apache-2.0
#include "exporter/page.h"

#include "base/err.h"

void page_init(struct page *p, size_t max_bytes)
{
	for (int f = 0; f < PAGE_FORMAT__COUNT; f++) {
		p->forms[f] = (struct page_form){.round = 0};
		buf_init(&p->forms[f].front, max_bytes);
		buf_init(&p->forms[f].tail, max_bytes);
		gzip_page_init(&p->forms[f].gzip, max_bytes);
	}
	buf_init(&p->out, max_bytes);
}

void page_done(struct page *p)
{
	for (int f = 0; f < PAGE_FORMAT__COUNT; f++) {
		buf_done(&p->forms[f].front);
		buf_done(&p->forms[f].tail);
		gzip_page_done(&p->forms[f].gzip);
	}
	buf_done(&p->out);
}

int page_make(struct page *p, enum page_format format, bool gzip, uint64_t round, const struct buf *text,
              const struct buf *self, struct err *e)
{
	struct page_form *form = &p->forms[format];
	const struct buf *front = text, *tail = self;
	if (format == PAGE_OPENMETRICS) {
		if (form->round != round) {
			buf_reset(&form->front);
			openmetrics_convert(&form->front, buf_str(text), text->len);
			form->round = round;
		}
		buf_reset(&form->tail);
		openmetrics_convert(&form->tail, buf_str(self), self->len);
		openmetrics_end(&form->tail);
		front = &form->front;
		tail = &form->tail;
	}
	buf_reset(&p->out);
	if (text->failed || self->failed || front->failed || tail->failed)
		return err_set(e, ERR_LIMIT, "the page passes its ceiling of %zu bytes", p->out.max);
	if (gzip) {
		if (form->gzip_round != round) {
			form->gzip_round = 0;
			if (gzip_page_set_front(&form->gzip, buf_str(front), front->len, e) < 0)
				return -1;
			form->gzip_round = round;
		}
		return gzip_page_finish(&form->gzip, buf_str(tail), tail->len, &p->out, e);
	}
	buf_put(&p->out, buf_str(front), front->len);
	buf_put(&p->out, buf_str(tail), tail->len);
	return p->out.failed ? err_set(e, ERR_LIMIT, "the page passes its ceiling of %zu bytes", p->out.max) : 0;
}
