// SPDX-License-Identifier: Apache-2.0
// The status page: one HTML document in the program itself (controller/status_page.html), and the policy that keeps a
// browser from running or fetching anything else in its name.
#ifndef GPUSCALE_CONTROLLER_STATUS_PAGE_H
#define GPUSCALE_CONTROLLER_STATUS_PAGE_H

#include <stddef.h>

struct buf;

#define STATUS_PAGE_BYTES_MAX  (512 * 1024)
#define STATUS_PAGE_ETAG_BYTES 48

const char *status_page(size_t *ret_len);
// The Content-Security-Policy of such a page: of scripts and styles only what stands in it between <script> and
// </script>, <style> and </style>, told by its digest; requests to its own server alone.
void status_page_csp(const char *html, size_t len, struct buf *out);
// A strong entity tag, with its quotes.
void status_page_etag(const char *html, size_t len, char out[STATUS_PAGE_ETAG_BYTES]);

#endif
