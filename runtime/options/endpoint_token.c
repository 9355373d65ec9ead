// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/endpoint_token.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file_open.h"
#include "base/http/http_server.h"
#include "base/process/log.h"

struct endpoint_token {
	const char *path;
	struct log *log;
	struct file_stamp stamp;                    // of the file just before it was read
	unsigned char digest[SHA256_DIGEST_LENGTH]; // of the token; the token itself is not kept
};

static bool is_visible(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return true;
}

static int take(struct endpoint_token *t, const struct buf *file, struct err *e)
{
	const char *text = buf_str(file);
	size_t len = file->len;
	while (len > 0 && memchr(" \t\r\n", text[len - 1], 4))
		len--;
	if (len == 0)
		return err_set(e, ERR_INPUT, "%s: there is no token in it", t->path);
	if (!is_visible(text, len))
		return err_set(e, ERR_INPUT, "%s: a token is one line of visible ASCII characters", t->path);
	SHA256((const unsigned char *)text, len, t->digest);
	return 0;
}

static int read_token(struct endpoint_token *t, struct err *e)
{
	struct buf file;
	buf_init(&file, ENDPOINT_TOKEN_BYTES_MAX);
	t->stamp = file_stamp_of(t->path);
	int rc = buf_read_file(&file, t->path, e) < 0 ? -1 : take(t, &file, e);
	if (file.data)
		OPENSSL_cleanse(file.data, file.cap);
	buf_done(&file);
	return rc;
}

struct endpoint_token *endpoint_token_new(const char *path, struct log *log, struct err *e)
{
	struct endpoint_token *t = calloc(1, sizeof *t);
	if (!t) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	t->path = path;
	t->log = log;
	if (read_token(t, e) < 0) {
		err_wrap(e, "endpoint token");
		endpoint_token_free(t);
		return NULL;
	}
	return t;
}

void endpoint_token_free(struct endpoint_token *t)
{
	if (!t)
		return;
	OPENSSL_cleanse(t->digest, sizeof t->digest);
	free(t);
}

static void follow(struct endpoint_token *t)
{
	struct file_stamp now = file_stamp_of(t->path);
	struct err e;
	if (file_stamp_is_same(&now, &t->stamp))
		return;
	if (read_token(t, &e) == 0)
		LOG(t->log, LOG_INFO, "Reloaded endpoint token", LOG_S("file", t->path));
	else
		LOG(t->log, LOG_ERROR, "Cannot use changed endpoint token; keeping the previous one",
		    LOG_S("err", e.msg));
}

// ?verbose names policies and sources, so it needs the token.
static bool is_for_everybody(struct http_exchange *x)
{
	const char *path = http_exchange_path(x);
	if (strcmp(path, "/") == 0)
		return true; // the page has no data; it asks the user for the token, and requests the data with it
	if (http_exchange_query(x, "verbose"))
		return false;
	return strcmp(path, "/livez") == 0 || strcmp(path, "/readyz") == 0 || strcmp(path, "/healthz") == 0;
}

bool endpoint_token_admit(void *arg, struct http_exchange *x)
{
	static const char scheme[] = "Bearer ";
	struct endpoint_token *t = arg;
	unsigned char shown[SHA256_DIGEST_LENGTH];
	if (is_for_everybody(x))
		return true;
	follow(t);
	const char *header = http_exchange_header(x, "Authorization");
	if (header && strncasecmp(header, scheme, sizeof scheme - 1) == 0) {
		const char *token = header + sizeof scheme - 1;
		token += strspn(token, " ");
		SHA256((const unsigned char *)token, strlen(token), shown);
		if (CRYPTO_memcmp(shown, t->digest, sizeof shown) == 0)
			return true;
	}
	http_exchange_set_header(x, "WWW-Authenticate", "Bearer realm=\"gpuscale\"");
	http_exchange_reply_text(x, 401, "Unauthorized");
	return false;
}
