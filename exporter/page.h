// SPDX-License-Identifier: Apache-2.0
// What /metrics answers: the last round's text and what the exporter says about itself, in the format and encoding a
// client takes. Each form of a round is made at the first request that wants it, and kept until the next round.
#ifndef GPUSCALE_EXPORTER_PAGE_H
#define GPUSCALE_EXPORTER_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "exporter/gzip_page.h"
#include "exporter/openmetrics.h"

struct err;

// One format: the round as it stands there, and compressed. round 0: not made yet.
struct page_form {
	struct buf front, tail;
	uint64_t round, gzip_round;
	struct gzip_page gzip;
};

struct page {
	struct page_form forms[PAGE_FORMAT__COUNT];
	struct buf out; // the whole page
};

// max_bytes: ceiling on a page.
void page_init(struct page *p, size_t max_bytes);
void page_done(struct page *p);
// Makes p->out from the round's text (`round` > 0 tells whether it is a new one) and the self metrics.
int page_make(struct page *p, enum page_format format, bool gzip, uint64_t round, const struct buf *text,
              const struct buf *self, struct err *e);

#endif
