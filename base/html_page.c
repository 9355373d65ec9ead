// SPDX-License-Identifier: Apache-2.0
#include "base/html_page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/base.h"

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

void html_put_digests(struct buf *out, const char *html, size_t len, const char *begin_tag, const char *end_tag)
{
	const char *at = html, *end = html + len;
	while ((at = memmem(at, (size_t)(end - at), begin_tag, strlen(begin_tag)))) {
		unsigned char digest[SHA256_DIGEST_LENGTH], text[4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1];
		at += strlen(begin_tag);
		const char *stop = memmem(at, (size_t)(end - at), end_tag, strlen(end_tag));
		if (!stop)
			return;
		SHA256((const unsigned char *)at, (size_t)(stop - at), digest);
		EVP_EncodeBlock(text, digest, sizeof digest);
		buf_printf(out, " 'sha256-%s'", (const char *)text);
		at = stop;
	}
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
