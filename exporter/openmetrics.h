// SPDX-License-Identifier: Apache-2.0
// The page in the other format: OpenMetrics 1.0 made from our own text exposition, and which of the two a client asks
// for. Counters that are not called _total (DCGM's) become `unknown`, since OpenMetrics has no name for them.
#ifndef GPUSCALE_EXPORTER_OPENMETRICS_H
#define GPUSCALE_EXPORTER_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

enum page_format { PAGE_TEXT, PAGE_OPENMETRICS, PAGE_FORMAT__COUNT };

// "text/plain; version=0.0.4; ..", "application/openmetrics-text; version=1.0.0; ..".
const char *page_content_type(enum page_format format);
// What an Accept header (NULL: none) likes best: the highest q, OpenMetrics among equals, the text format when it names
// neither. Versions of OpenMetrics other than 1.0.0 and 0.0.1 are passed over. RFC 9110, 12.5.1.
enum page_format page_format_wanted(const char *accept);
// Whether an Accept-Encoding header (NULL: none) takes gzip. RFC 9110, 12.5.3.
bool page_gzip_wanted(const char *accept_encoding);

// Appends text[0..len), families with HELP and TYPE as base/exposition writes them, as OpenMetrics. The page's last
// line
// `# EOF` is openmetrics_end's.
void openmetrics_convert(struct buf *out, const char *text, size_t len);
void openmetrics_end(struct buf *out);

#endif
