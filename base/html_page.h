// SPDX-License-Identifier: Apache-2.0
// Fills in a template of an HTML page: its words @name@ are replaced by content.
#ifndef GPUSCALE_BASE_HTML_PAGE_H
#define GPUSCALE_BASE_HTML_PAGE_H

#include <stddef.h>

struct buf;

// Appends the template up to the word @name@ and returns the text behind the word. Marks `out` as failed when the
// template lacks the word, which is a fault of the program.
const char *html_page_until(struct buf *out, const char *template, const char *name);
// Appends the page with a Content-Security-Policy in place of the word @csp@: the page requests nothing, and runs only
// its own scripts and styles.
void html_page_finish(struct buf *out, const struct buf *page);
// Appends digests for a Content-Security-Policy, " 'sha256-..'" for each element of html[0..len) that starts with
// begin_tag, such as "<style>". Such an element ends at its first end_tag.
void html_put_digests(struct buf *out, const char *html, size_t len, const char *begin_tag, const char *end_tag);

#endif
