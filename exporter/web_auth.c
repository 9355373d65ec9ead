// SPDX-License-Identifier: Apache-2.0
#include "exporter/web_auth.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/err.h"
#include "exporter/bcrypt.h"
#include "exporter/web_config.h"

#define DIGEST_BYTES 32
#define KEY_BYTES    32

struct web_auth {
	struct bcrypt *bcrypt;
	struct web_user users[WEB_CONFIG_USERS_MAX];
	size_t n;
	unsigned char key[KEY_BYTES]; // of this process
	unsigned char good[WEB_CONFIG_USERS_MAX][DIGEST_BYTES];
	bool has_good[WEB_CONFIG_USERS_MAX];
	int64_t tries_ms; // when the bucket of tries will be full again
};

struct web_auth *web_auth_new(const struct web_user *users, size_t n, struct err *e)
{
	assert(n <= WEB_CONFIG_USERS_MAX);
	struct web_auth *a = calloc(1, sizeof *a);
	if (!a) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	a->n = n;
	memcpy(a->users, users, n * sizeof *users);
	a->bcrypt = bcrypt_new(e);
	if (a->bcrypt && getrandom(a->key, sizeof a->key, 0) != (ssize_t)sizeof a->key) {
		err_set(e, ERR_INTERNAL, "no random bytes");
		bcrypt_free(a->bcrypt);
		a->bcrypt = NULL;
	}
	if (!a->bcrypt) {
		free(a);
		return NULL;
	}
	return a;
}

void web_auth_free(struct web_auth *a)
{
	if (!a)
		return;
	bcrypt_free(a->bcrypt);
	OPENSSL_cleanse(a, sizeof *a);
	free(a);
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Strict base64 (RFC 4648, padding wanted). -1 when it is none, holds a NUL, or does not fit with its terminator.
static int decode_base64(const char *s, char *out, size_t size)
{
	size_t len = strlen(s), n = 0, pad = 0;
	while (pad < 2 && len > pad && s[len - 1 - pad] == '=')
		pad++;
	if (len == 0 || len % 4 != 0 || len / 4 * 3 >= size)
		return -1;
	uint32_t bits = 0;
	for (size_t i = 0; i < len - pad; i++) {
		int v = base64_value(s[i]);
		if (v < 0)
			return -1;
		bits = bits << 6 | (uint32_t)v;
		if (i % 4 == 0)
			continue;
		out[n] = (char)(bits >> (6 - 2 * (i % 4)) & 0xff);
		if (out[n++] == '\0')
			return -1;
	}
	out[n] = '\0';
	return pad && bits & (pad == 1 ? 3 : 15) ? -1 : 0; // bits that stand for nothing
}

// "Basic dXNlcjpwYXNz": the name and password in `text`. False when the header is none of that.
static bool parse_header(const char *header, char *text, size_t size, char **ret_password)
{
	if (!header || strlen(header) > WEB_AUTH_HEADER_BYTES_MAX || strncasecmp(header, "Basic ", 6) != 0)
		return false;
	header += 6;
	header += strspn(header, " ");
	if (decode_base64(header, text, size) < 0)
		return false;
	char *colon = strchr(text, ':');
	if (!colon)
		return false;
	*colon = '\0';
	*ret_password = colon + 1;
	return true;
}

static bool digest(const struct web_auth *a, size_t user, const char *password, unsigned char out[DIGEST_BYTES])
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char index = (unsigned char)user;
	bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
	          EVP_DigestUpdate(md, a->key, sizeof a->key) == 1 && EVP_DigestUpdate(md, &index, 1) == 1 &&
	          EVP_DigestUpdate(md, password, strlen(password)) == 1 && EVP_DigestFinal_ex(md, out, NULL) == 1;
	EVP_MD_CTX_free(md);
	return ok;
}

// Takes one try from a bucket that refills with time.
static bool may_try(struct web_auth *a, int64_t mono_ms)
{
	if (a->tries_ms < mono_ms)
		a->tries_ms = mono_ms;
	if (a->tries_ms + WEB_AUTH_TRY_MS > mono_ms + (int64_t)WEB_AUTH_TRIES_BURST * WEB_AUTH_TRY_MS)
		return false;
	a->tries_ms += WEB_AUTH_TRY_MS;
	return true;
}

static enum web_auth_result check(struct web_auth *a, const char *name, const char *password, int64_t mono_ms)
{
	unsigned char d[DIGEST_BYTES];
	size_t user = 0;
	while (user < a->n && strcmp(a->users[user].name, name) != 0)
		user++;
	bool known = user < a->n;
	if (!digest(a, known ? user : WEB_CONFIG_USERS_MAX, password, d))
		return WEB_AUTH_LATER; // memory ended
	if (known && a->has_good[user] && CRYPTO_memcmp(d, a->good[user], sizeof d) == 0)
		return WEB_AUTH_GOOD;
	if (!may_try(a, mono_ms))
		return WEB_AUTH_LATER;
	// For a user who is not there the first one's hash is tried, so that time does not tell.
	bool good = bcrypt_verify(a->bcrypt, password, a->users[known ? user : 0].hash) && known;
	if (good) {
		memcpy(a->good[user], d, sizeof d);
		a->has_good[user] = true;
	}
	return good ? WEB_AUTH_GOOD : WEB_AUTH_BAD;
}

enum web_auth_result web_auth_check(struct web_auth *a, const char *authorization, int64_t mono_ms)
{
	char text[WEB_AUTH_HEADER_BYTES_MAX], *password;
	enum web_auth_result r = WEB_AUTH_BAD;
	if (parse_header(authorization, text, sizeof text, &password))
		r = check(a, text, password, mono_ms);
	OPENSSL_cleanse(text, sizeof text);
	return r;
}
