// SPDX-License-Identifier: Apache-2.0
// The status page, and its content security policy.
#include "base/base.h"
#include "controller/serve/endpoints.h"

#define ZLIB_CONST // the input is read-only
#include <openssl/sha.h>
#include <zlib.h>

#include "base/html_page.h"

#ifndef STATUS_PAGE_GZ
#define STATUS_PAGE_GZ "/dev/null" // for tools that read the code and build nothing
#endif
// Compressed while it is in the program; scripts/embedded_pages.mk makes the file.
__asm__(".section .rodata\n"
        ".global status_page_begin, status_page_end\n"
        "status_page_begin:\n"
        ".incbin \"" STATUS_PAGE_GZ "\"\n"
        "status_page_end:\n"
        ".previous\n");
extern const unsigned char status_page_begin[], status_page_end[];

int status_page(struct buf *out, struct err *e)
{
	z_stream z = {.next_in = status_page_begin,
	              .avail_in = (uInt)((uintptr_t)status_page_end - (uintptr_t)status_page_begin)};
	if (buf_reserve(out, STATUS_PAGE_BYTES_MAX) < 0 || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return err_no_memory(e);
	z.next_out = (unsigned char *)out->data + out->len;
	z.avail_out = STATUS_PAGE_BYTES_MAX;
	int rc = inflate(&z, Z_FINISH);
	out->len += z.total_out;
	out->data[out->len] = '\0';
	inflateEnd(&z);
	assert(rc == Z_STREAM_END); // else the program was built wrong
	return 0;
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
