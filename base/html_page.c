// SPDX-License-Identifier: Apache-2.0
#include "base/html_page.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/html_digest.h"

#define WORD_BYTES 32

const char *html_page_until(struct buf *out, const char *template, const char *name)
{
	char word[WORD_BYTES];
	snprintf(word, sizeof word, "@%s@", name);
	const char *at = strstr(template, word);
	if (!at) {
		out->failed = true;
		return template;
	}
	buf_put(out, template, (size_t)(at - template));
	return at + strlen(word);
}

// The digests are those of the finished page.
void html_page_finish(struct buf *out, const struct buf *page)
{
	const char *html = buf_str(page), *rest = html_page_until(out, html, "csp");
	buf_puts(out, "default-src 'none'; img-src data:; script-src");
	html_put_digests(out, html, page->len, "<script>", "</script>");
	buf_puts(out, "; style-src");
	html_put_digests(out, html, page->len, "<style>", "</style>");
	buf_puts(out, "; base-uri 'none'; form-action 'none'");
	buf_put(out, rest, page->len - (size_t)(rest - html));
}
