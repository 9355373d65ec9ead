// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_auth.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "promql/identity.h"

static void forget(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

static int set_text(char **ret, const char *text, struct err *e)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? err_no_memory(e) : 0;
}

// A control character would end the header and start a second header.
static bool is_header_safe(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

// The file's text without the line ends at its end, which every editor and `echo` adds.
static int read_secret(const char *path, char **ret_secret, struct err *e)
{
	struct buf b;
	buf_init(&b, PROMQL_SECRET_BYTES_MAX);
	int rc = buf_read_file(&b, path, e);
	if (rc == 0) {
		while (b.len > 0 && (b.data[b.len - 1] == '\n' || b.data[b.len - 1] == '\r'))
			b.data[--b.len] = '\0';
		if (b.len == 0)
			rc = err_set(e, ERR_INPUT, "%s is empty", path);
		else if (strlen(b.data) != b.len || !is_header_safe(b.data))
			rc = err_set(e, ERR_INPUT, "%s holds control characters: it must hold one line of text", path);
		else
			rc = set_text(ret_secret, b.data, e);
	}
	if (b.data)
		explicit_bzero(b.data, b.len);
	buf_done(&b);
	return rc;
}

static int reread(struct promql_auth *a, int64_t now_mono_ms, struct err *e)
{
	a->read_at_ms = now_mono_ms;
	char *fresh = NULL;
	if (read_secret(a->secret_file, &fresh, e) < 0)
		return -1;
	if (a->secret && strcmp(fresh, a->secret) == 0) {
		forget(fresh);
		return 0;
	}
	forget(a->secret);
	a->secret = fresh;
	a->generation++;
	return 0;
}

int promql_auth_init(struct promql_auth *a, const struct promql_options *o, int64_t now_mono_ms, struct err *e)
{
	*a = (struct promql_auth){0};
	int ways = (o->bearer_token != NULL) + (o->bearer_token_file != NULL) +
	           (o->basic_user != NULL || o->basic_password_file != NULL) + (o->identity != PROMQL_IDENTITY_NONE);
	if (ways > 1)
		return err_set(e, ERR_INPUT,
		               "more than one of bearer token, bearer token file, basic user and workload identity is "
		               "given: keep one");
	if ((o->basic_user != NULL) != (o->basic_password_file != NULL))
		return err_set(e, ERR_INPUT, "a basic user needs a password file, and a password file a basic user");
	if (o->basic_user && (!is_header_safe(o->basic_user) || strchr(o->basic_user, ':')))
		return err_set(e, ERR_INPUT, "the basic user holds a ':' or a control character");
	if (o->bearer_token && (!*o->bearer_token || !is_header_safe(o->bearer_token)))
		return err_set(e, ERR_INPUT, "the bearer token is empty or holds a control character");
	if (set_text(&a->basic_user, o->basic_user, e) < 0 || set_text(&a->secret, o->bearer_token, e) < 0 ||
	    set_text(&a->secret_file, o->basic_user ? o->basic_password_file : o->bearer_token_file, e) < 0)
		return -1;
	a->identity = o->identity;
	a->asked_at_ms = now_mono_ms - PROMQL_TOKEN_AGAIN_MS;
	if (set_text(&a->region, o->region, e) < 0 || identity_check(a->identity, a->region, a->scope, e) < 0)
		return -1;
	return a->secret_file ? reread(a, now_mono_ms, e) : 0;
}

void promql_auth_done(struct promql_auth *a)
{
	forget(a->secret);
	forget(a->session);
	free(a->key_id);
	free(a->region);
	free(a->basic_user);
	free(a->secret_file);
	*a = (struct promql_auth){0};
}

int promql_auth_set(struct promql_auth *a, const struct promql_credentials *c, struct err *e)
{
	const char *secret = c->basic_user ? c->basic_password : c->bearer_token;
	char *user = NULL, *copy = NULL;
	if (c->basic_user && c->bearer_token)
		return err_set(e, ERR_INPUT, "both a bearer token and a basic user are given: keep one");
	if (c->basic_user && (!is_header_safe(c->basic_user) || strchr(c->basic_user, ':')))
		return err_set(e, ERR_INPUT, "the basic user holds a ':' or a control character");
	if ((c->basic_user || secret) && (!secret || !*secret || !is_header_safe(secret)))
		return err_set(e, ERR_INPUT, "the %s is empty or holds a control character",
		               c->basic_user ? "password" : "bearer token");
	if (set_text(&user, c->basic_user, e) < 0 || set_text(&copy, secret, e) < 0) {
		free(user);
		return -1;
	}
	forget(a->secret);
	free(a->basic_user);
	a->secret = copy;
	a->basic_user = user;
	a->generation++;
	return 0;
}

void promql_auth_refresh(struct promql_auth *a, int64_t now_mono_ms)
{
	if (a->secret_file && now_mono_ms - a->read_at_ms >= PROMQL_SECRET_AGE_MS)
		reread(a, now_mono_ms, NULL);
}

int promql_auth_renew(struct promql_auth *a, uint64_t generation, int64_t now_mono_ms, bool *ret_changed, struct err *e)
{
	*ret_changed = false;
	if (!a->secret_file)
		return 0;
	if (reread(a, now_mono_ms, e) < 0)
		return -1;
	*ret_changed = a->generation != generation;
	return 0;
}

// ---- the token of a workload identity ----

bool promql_auth_is_ready(const struct promql_auth *a, int64_t now_mono_ms)
{
	return a->identity == PROMQL_IDENTITY_NONE || (a->secret && now_mono_ms < a->valid_until_ms);
}

bool promql_auth_wants_token(const struct promql_auth *a, int64_t now_mono_ms)
{
	return a->identity != PROMQL_IDENTITY_NONE && now_mono_ms - a->asked_at_ms >= PROMQL_TOKEN_AGAIN_MS &&
	       (!a->secret || now_mono_ms >= a->replace_at_ms);
}

void promql_auth_set_token(struct promql_auth *a, struct identity_token *t, int64_t now_mono_ms)
{
	int64_t early_ms = t->lifetime_ms / 5 < PROMQL_TOKEN_EARLY_MS ? t->lifetime_ms / 5 : PROMQL_TOKEN_EARLY_MS;
	int64_t margin_ms = early_ms < PROMQL_TOKEN_MARGIN_MS ? early_ms : PROMQL_TOKEN_MARGIN_MS;
	forget(a->secret);
	forget(a->session);
	free(a->key_id);
	a->secret = t->secret;
	a->key_id = t->key_id;
	a->session = t->session;
	a->aws = (struct http_aws){a->scope, a->key_id, a->secret, a->session};
	a->replace_at_ms = now_mono_ms + t->lifetime_ms - early_ms;
	a->valid_until_ms = now_mono_ms + t->lifetime_ms - margin_ms;
	a->generation++;
	*t = (struct identity_token){0};
}

bool promql_auth_token_refused(struct promql_auth *a, uint64_t generation, int64_t now_mono_ms)
{
	if (a->generation != generation)
		return true;
	// A server that refuses every token, for lack of a permission, must not cause a request per query.
	if (now_mono_ms - a->asked_at_ms < PROMQL_TOKEN_AGAIN_MS)
		return false;
	a->valid_until_ms = a->replace_at_ms = now_mono_ms;
	return true;
}

void promql_auth_apply(const struct promql_auth *a, struct http_request *request)
{
	if (a->key_id) {
		request->aws = &a->aws;
	} else if (a->basic_user) {
		request->basic_user = a->basic_user;
		request->basic_password = a->secret;
	} else {
		request->bearer_token = a->secret;
	}
}
