// SPDX-License-Identifier: Apache-2.0
// Converts the text exposition of base/exposition to OpenMetrics 1.0, and negotiates which of the two a client gets.
// Counters without the suffix _total (DCGM's) become `unknown`, because OpenMetrics does not allow such names.
#ifndef GPUSCALE_EXPORTER_PAGE_OPENMETRICS_H
#define GPUSCALE_EXPORTER_PAGE_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

enum page_format { PAGE_TEXT, PAGE_OPENMETRICS, PAGE_FORMAT__COUNT };

// "text/plain; version=0.0.4; ..", "application/openmetrics-text; version=1.0.0; ..".
const char *page_content_type(enum page_format format);
// The format that an Accept header prefers: the one with the highest q, OpenMetrics among equals, the text format if
// the header names neither or is NULL. Versions of OpenMetrics other than 1.0.0 and 0.0.1 are ignored. RFC 9110,
// 12.5.1.
enum page_format page_format_wanted(const char *accept);
// True if an Accept-Encoding header accepts gzip. NULL: no header. RFC 9110, 12.5.3.
bool page_gzip_wanted(const char *accept_encoding);

// Appends text[0..len), families with HELP and TYPE as written by base/exposition, to `out` as OpenMetrics.
// openmetrics_end() appends the last line of the page, `# EOF`.
void openmetrics_convert(struct buf *out, const char *text, size_t len);
void openmetrics_end(struct buf *out);

#endif
