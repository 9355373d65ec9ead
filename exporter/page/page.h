// SPDX-License-Identifier: Apache-2.0
// The reply to /metrics: the text of the last round and the self metrics, in the format and encoding that the client
// accepts: the text exposition of base/exposition or OpenMetrics 1.0, in which counters without the suffix _total
// (DCGM's) become `unknown`, because it does not allow such names. Every form is made for each request: keeping it
// until the next round would cost more memory than it saves work.
#ifndef GPUSCALE_EXPORTER_PAGE_PAGE_H
#define GPUSCALE_EXPORTER_PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/buf.h"

struct err;

enum page_format { PAGE_TEXT, PAGE_OPENMETRICS, PAGE_FORMAT__COUNT };

// "text/plain; version=0.0.4; ..", "application/openmetrics-text; version=1.0.0; ..".
const char *page_content_type(enum page_format format);
// The format that an Accept header prefers: the one with the highest q, OpenMetrics among equals, the text format if
// the header names neither or is NULL. Versions of OpenMetrics other than 1.0.0 and 0.0.1 are ignored. RFC 9110,
// 12.5.1.
enum page_format page_format_wanted(const char *accept);
// True if an Accept-Encoding header accepts gzip. NULL: no header. RFC 9110, 12.5.3.
bool page_gzip_wanted(const char *accept_encoding);

// Appends text[0..len), families with HELP and TYPE as written by base/exposition, to `out` as OpenMetrics, without the
// last line of a page.
void openmetrics_convert(struct buf *out, const char *text, size_t len);

struct page {
	z_stream stream; // kept, so that its 64 KiB are allocated once
	bool has_stream;
	struct buf text; // text of the round for a page in OpenMetrics; scratch
	struct buf out;  // the whole page
};

// Prepares `p`. `max_bytes` is the limit on a page.
void page_init(struct page *p, size_t max_bytes);
void page_done(struct page *p);
// Returns the empty buffer into which the caller writes the text of the round, for page_make with the same format. The
// plain text is written where it is sent from, because copying it would be half of the work of a scrape.
struct buf *page_text(struct page *p, enum page_format format);
// Renders the text of the round and `self` (the self metrics) into p->out. Returns -1 and fills `e` if the page exceeds
// its limit.
int page_make(struct page *p, enum page_format format, bool gzip, const struct buf *self, struct err *e);

// Moves the page from p->out to *ret_text, where it stays unchanged until it was sent.
void page_lend(struct page *p, struct buf *ret_text);
// Takes the memory of *text back for the next page, or frees it when `p` has other memory by then.
void page_take_back(struct page *p, struct buf *text);

// Leaves in p->out, a page in PAGE_TEXT without gzip, only the families that `list` names: "A,B". Unknown names are
// ignored. Returns -1 and fills `e` when memory is exhausted.
int page_keep_families(struct page *p, const char *list, struct err *e);

#endif
