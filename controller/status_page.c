// SPDX-License-Identifier: Apache-2.0
#include "controller/status_page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

// Found from the folder that make runs in; scripts/status_page.mk says that this file depends on it.
__asm__(".section .rodata\n"
        ".global status_page_begin, status_page_end\n"
        "status_page_begin:\n"
        ".incbin \"controller/status_page.html\"\n"
        "status_page_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char status_page_begin[], status_page_end[];

const char *status_page(size_t *ret_len)
{
	*ret_len = (size_t)((uintptr_t)status_page_end - (uintptr_t)status_page_begin);
	return status_page_begin;
}

// " 'sha256-..'" for each element of that name. Such an element ends at the first end tag, wherever it stands.
static void put_digests(struct buf *out, const char *html, size_t len, const char *begin_tag, const char *end_tag)
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

void status_page_csp(const char *html, size_t len, struct buf *out)
{
	buf_puts(out, "default-src 'none'; script-src");
	put_digests(out, html, len, "<script>", "</script>");
	buf_puts(out, "; style-src");
	put_digests(out, html, len, "<style>", "</style>");
	buf_puts(out,
	         "; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
}

void status_page_etag(const char *html, size_t len, char out[STATUS_PAGE_ETAG_BYTES])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	SHA256((const unsigned char *)html, len, digest);
	size_t n = 0;
	out[n++] = '"';
	for (size_t i = 0; i < 16; i++)
		n += (size_t)snprintf(out + n, STATUS_PAGE_ETAG_BYTES - n, "%02x", digest[i]);
	snprintf(out + n, STATUS_PAGE_ETAG_BYTES - n, "\"");
}
