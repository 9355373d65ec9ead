// SPDX-License-Identifier: Apache-2.0
// The status page: one HTML document compiled into the program (controller/serve/status_page.html), and the content
// security policy that keeps a browser from running or fetching anything else for it.
#ifndef GPUSCALE_CONTROLLER_SERVE_STATUS_PAGE_H
#define GPUSCALE_CONTROLLER_SERVE_STATUS_PAGE_H

#include <stddef.h>

struct buf;
struct err;

#define STATUS_PAGE_BYTES_MAX  (128 * 1024)
#define STATUS_PAGE_ETAG_BYTES 48

// Appends the page. Returns 0, or -1 and *e when there is no memory for STATUS_PAGE_BYTES_MAX.
int status_page(struct buf *out, struct err *e);
// Appends the Content-Security-Policy of the page: permits, by digest, only the scripts and styles between its <script>
// and <style> tags, and requests to its own server alone.
void status_page_csp(const char *html, size_t len, struct buf *out);
// Writes a strong entity tag, with its quotes.
void status_page_etag(const char *html, size_t len, char out[STATUS_PAGE_ETAG_BYTES]);

#endif
