// SPDX-License-Identifier: Apache-2.0
#include "controller/serve/status_page.h"

#include <openssl/sha.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/html_digest.h"

// Relative to the folder that make runs in; scripts/embedded_pages.mk has the dependency.
__asm__(".section .rodata\n"
        ".global status_page_begin, status_page_end\n"
        "status_page_begin:\n"
        ".incbin \"controller/serve/status_page.html\"\n"
        "status_page_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char status_page_begin[], status_page_end[];

const char *status_page(size_t *ret_len)
{
	*ret_len = (size_t)((uintptr_t)status_page_end - (uintptr_t)status_page_begin);
	return status_page_begin;
}

void status_page_csp(const char *html, size_t len, struct buf *out)
{
	buf_puts(out, "default-src 'none'; script-src");
	html_put_digests(out, html, len, "<script>", "</script>");
	buf_puts(out, "; style-src");
	html_put_digests(out, html, len, "<style>", "</style>");
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
