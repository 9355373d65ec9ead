// SPDX-License-Identifier: Apache-2.0
// What /metrics answers: the last round's text and what the exporter says about itself, in the format and encoding a
// client takes. A round is compressed at the first request that wants it so, and kept until the next one; the plain
// forms are made each time, since they would cost more memory than work.
#ifndef GPUSCALE_EXPORTER_PAGE_H
#define GPUSCALE_EXPORTER_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "exporter/gzip_page.h"
#include "exporter/openmetrics.h"

struct err;

struct page {
	// Per format: which round is compressed there; 0: none.
	struct page_form {
		uint64_t round;
		struct gzip_page gzip;
	} forms[PAGE_FORMAT__COUNT];
	struct buf tail; // the self metrics in OpenMetrics
	struct buf out;  // the whole page
};

// max_bytes: ceiling on a page.
void page_init(struct page *p, size_t max_bytes);
void page_done(struct page *p);
// Makes p->out from the round's text (`round` > 0 tells whether it is a new one) and the self metrics.
int page_make(struct page *p, enum page_format format, bool gzip, uint64_t round, const struct buf *text,
              const struct buf *self, struct err *e);

#endif
