// SPDX-License-Identifier: Apache-2.0
// Digests of the scripts and styles of an HTML page, for its Content-Security-Policy.
#ifndef GPUSCALE_BASE_HTML_DIGEST_H
#define GPUSCALE_BASE_HTML_DIGEST_H

#include <stddef.h>

struct buf;

// Appends " 'sha256-..'" for each element of html[0..len) that starts with begin_tag, such as "<style>". Such an
// element ends at its first end_tag.
void html_put_digests(struct buf *out, const char *html, size_t len, const char *begin_tag, const char *end_tag);

#endif
