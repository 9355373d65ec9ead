// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/pem.h"

#include <limits.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

int pem_from_base64(struct arena *a, const char *text, size_t len, const char **ret_pem, struct err *e)
{
	if (len > INT_MAX / 2)
		return err_set(e, ERR_LIMIT, "%zu bytes of base64 are too large for a certificate", len);
	unsigned char *packed = arena_alloc(a, len + 1);
	unsigned char *pem = arena_alloc(a, len / 4 * 3 + 4);
	if (!packed || !pem)
		return err_set(e, ERR_INTERNAL, "out of memory");
	size_t n = 0;
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\n", text[i]))
			packed[n++] = (unsigned char)text[i];
	size_t padding = 0;
	while (padding < 2 && padding < n && packed[n - 1 - padding] == '=')
		padding++;
	// The decoder reads '=' as zero bits at any position, and stops at '-', the end of a PEM body.
	if (n == 0 || n % 4 != 0 || memchr(packed, '=', n - padding) || memchr(packed, '-', n))
		return err_set(e, ERR_INPUT, "is not base64");
	int decoded = EVP_DecodeBlock(pem, packed, (int)n);
	if (decoded < 0 || (size_t)decoded < padding)
		return err_set(e, ERR_INPUT, "is not base64");
	size_t pem_len = (size_t)decoded - padding;
	pem[pem_len] = '\0';
	if (strlen((char *)pem) != pem_len || !strstr((char *)pem, "-----BEGIN "))
		return err_set(e, ERR_INPUT, "is base64, but not of a PEM file (\"-----BEGIN ...\")");
	*ret_pem = (char *)pem;
	return 0;
}
