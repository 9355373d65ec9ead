// SPDX-License-Identifier: Apache-2.0
#include "base/html_digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/buf.h"

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
