// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/bcrypt.h"

#include <dlfcn.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define DATA_BYTES 32768 // struct crypt_data of libxcrypt; crypt_rn refuses less

struct bcrypt {
	void *library;
	char *(*crypt_rn)(const char *phrase, const char *setting, void *data, int size);
	char data[DATA_BYTES];
};

struct bcrypt *bcrypt_new(struct err *e)
{
	// A hash of the password "x": a library that verifies it supports bcrypt.
	static const char probe[] = "$2b$04$abcdefghijklmnopqrstuu";
	static const char *const names[] = {"libcrypt.so.1", "libcrypt.so.2"};
	struct bcrypt *b = calloc(1, sizeof *b);
	if (!b) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	for (size_t i = 0; i < sizeof names / sizeof names[0] && !b->library; i++)
		b->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	void *symbol = b->library ? dlsym(b->library, "crypt_rn") : NULL;
	memcpy(&b->crypt_rn, &symbol, sizeof symbol);
	const char *hash = b->crypt_rn ? b->crypt_rn("x", probe, b->data, sizeof b->data) : NULL;
	if (!hash || strncmp(hash, probe, sizeof probe - 2) != 0) {
		err_set(e, ERR_UNSUPPORTED, "basic auth needs libcrypt.so.1 with bcrypt (Debian: libcrypt1)%s",
		        b->library ? "; the one here has none" : "");
		bcrypt_free(b);
		return NULL;
	}
	return b;
}

void bcrypt_free(struct bcrypt *b)
{
	if (!b)
		return;
	if (b->library)
		dlclose(b->library);
	OPENSSL_cleanse(b->data, sizeof b->data);
	free(b);
}

bool bcrypt_verify(struct bcrypt *b, const char *password, const char *hash)
{
	const char *got = b->crypt_rn(password, hash, b->data, sizeof b->data);
	size_t len = strlen(hash);
	return got && strlen(got) == len && CRYPTO_memcmp(got, hash, len) == 0;
}
