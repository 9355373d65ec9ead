// SPDX-License-Identifier: Apache-2.0
// The options of a client: checks and copies URL, headers and TLS once, before a request is sent, and keeps the
// credentials current.
#include <strings.h>

#include "base/base.h"
#include "base/http/http_text.h"
#include "promql/promql_private.h"

#define URL_BYTES_MAX    2048
#define HEADER_BYTES_MAX 8192

// ---- credentials ----

static int copy_text(char **ret, const char *text, struct err *e)
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

static int check_basic_user(const char *user, struct err *e)
{
	return user && (!is_header_safe(user) || strchr(user, ':'))
	               ? err_set(e, ERR_INPUT, "the basic user holds a ':' or a control character")
	               : 0;
}

static int check_secret(const char *secret, const char *what, struct err *e)
{
	return secret && (!*secret || !is_header_safe(secret))
	               ? err_set(e, ERR_INPUT, "the %s is empty or holds a control character", what)
	               : 0;
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
			rc = copy_text(ret_secret, b.data, e);
	}
	buf_wipe(&b);
	return rc;
}

static int reread(struct promql_auth *a, int64_t now_mono_ms, struct err *e)
{
	a->read_at_ms = now_mono_ms;
	char *fresh = NULL;
	if (read_secret(a->secret_file, &fresh, e) < 0)
		return -1;
	if (a->secret && strcmp(fresh, a->secret) == 0) {
		alloc_wipe(fresh);
		return 0;
	}
	alloc_wipe(a->secret);
	a->secret = fresh;
	a->generation++;
	return 0;
}

static int auth_init(struct promql_auth *a, const struct promql_options *o, int64_t now_mono_ms, struct err *e)
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
	if (check_basic_user(o->basic_user, e) < 0 || check_secret(o->bearer_token, "bearer token", e) < 0)
		return -1;
	if (copy_text(&a->basic_user, o->basic_user, e) < 0 || copy_text(&a->secret, o->bearer_token, e) < 0 ||
	    copy_text(&a->secret_file, o->basic_user ? o->basic_password_file : o->bearer_token_file, e) < 0)
		return -1;
	a->identity = o->identity;
	a->asked_at_ms = now_mono_ms - PROMQL_TOKEN_AGAIN_MS;
	if (copy_text(&a->region, o->region, e) < 0 || identity_check(a->identity, a->region, a->scope, e) < 0)
		return -1;
	return a->secret_file ? reread(a, now_mono_ms, e) : 0;
}

static void auth_done(struct promql_auth *a)
{
	alloc_wipe(a->secret);
	alloc_wipe(a->session);
	free(a->key_id);
	free(a->region);
	free(a->basic_user);
	free(a->secret_file);
	*a = (struct promql_auth){0};
}

static int auth_set(struct promql_auth *a, const struct promql_credentials *c, struct err *e)
{
	const char *secret = c->basic_user ? c->basic_password : c->bearer_token;
	char *user = NULL, *copy = NULL;
	if (c->basic_user && c->bearer_token)
		return err_set(e, ERR_INPUT, "both a bearer token and a basic user are given: keep one");
	if (check_basic_user(c->basic_user, e) < 0 || (c->basic_user ? check_secret(secret ? secret : "", "password", e)
	                                                             : check_secret(secret, "bearer token", e)) < 0)
		return -1;
	if (copy_text(&user, c->basic_user, e) < 0 || copy_text(&copy, secret, e) < 0) {
		free(user);
		return -1;
	}
	alloc_wipe(a->secret);
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
	alloc_wipe(a->secret);
	alloc_wipe(a->session);
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

// ---- URL, headers and TLS ----

static int check_url(const char *url, struct err *e)
{
	bool is_http = url && strncmp(url, "http://", 7) == 0, is_https = url && strncmp(url, "https://", 8) == 0;
	const char *host = is_http ? url + 7 : is_https ? url + 8 : "";
	if (!*host || *host == '/' || *host == ':')
		return err_set(e, ERR_INPUT,
		               "the Prometheus URL must look like http://host:9090 or https://host/prefix");
	if (strlen(url) > URL_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the Prometheus URL has %zu bytes; the ceiling is %d", strlen(url),
		               URL_BYTES_MAX);
	if (!http_is_credential(url, strlen(url)))
		return err_set(e, ERR_INPUT, "the Prometheus URL holds a blank, control or non-ASCII character");
	// The URL itself is not repeated here: the part before '@' may be a password.
	if (memchr(host, '@', strcspn(host, "/")))
		return err_set(e, ERR_INPUT,
		               "the Prometheus URL holds credentials: use a basic user with a password file");
	if (strpbrk(url, "?#"))
		return err_set(e, ERR_INPUT, "the Prometheus URL %s must end before '?' or '#'", url);
	return 0;
}

// The request is ours: these three would make its body mean something else.
static bool is_own_header(const char *header, size_t name_len)
{
	static const char *const own[] = {"Content-Type", "Content-Length", "Transfer-Encoding"};
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (strlen(own[i]) == name_len && strncasecmp(own[i], header, name_len) == 0)
			return true;
	return false;
}

// Messages name the header, never its value: that may be a secret.
static int check_header(const char *header, struct err *e)
{
	size_t n = strcspn(header, ":");
	if (header[n] != ':' || !http_is_token(header, n))
		return err_set(e, ERR_INPUT, "a custom header must look like \"Name: value\"");
	if (is_own_header(header, n))
		return err_set(e, ERR_INPUT, "header %.*s cannot be set: it belongs to the query itself", (int)n,
		               header);
	if (strlen(header) > HEADER_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "header %.*s has %zu bytes; the ceiling is %d", (int)(n < 80 ? n : 80),
		               header, strlen(header), HEADER_BYTES_MAX);
	if (!http_is_field_value(header + n, strlen(header + n)))
		return err_set(e, ERR_INPUT, "the value of header %.*s holds a control character",
		               (int)(n < 80 ? n : 80), header);
	return 0;
}

static int copy_headers(struct promql *p, const char *const *headers, struct err *e)
{
	size_t n = 0;
	while (headers && headers[n])
		n++;
	// One place is for our Content-Type.
	if (n > HTTP_HEADERS_MAX - 1)
		return err_set(e, ERR_LIMIT, "%zu custom headers are given; the ceiling is %d", n,
		               HTTP_HEADERS_MAX - 1);
	p->headers = calloc(n + 3, sizeof *p->headers);
	if (!p->headers)
		return err_no_memory(e);
	for (size_t i = 0; i <= n; i++) {
		const char *header = i ? headers[i - 1] : "Content-Type: application/x-www-form-urlencoded";
		if (i && check_header(header, e) < 0)
			return -1;
		p->headers[i] = strdup(header);
		if (!p->headers[i])
			return err_no_memory(e);
	}
	p->n_headers = n + 1;
	return 0;
}

static int set_urls(struct promql *p, const char *base, struct err *e)
{
	if (check_url(base, e) < 0)
		return -1;
	size_t len = strlen(base);
	while (base[len - 1] == '/')
		len--;
	if (asprintf(&p->url, "%.*s", (int)len, base) < 0 || asprintf(&p->query_url, "%s/api/v1/query", p->url) < 0 ||
	    asprintf(&p->range_url, "%s/api/v1/query_range", p->url) < 0 ||
	    asprintf(&p->buildinfo_url, "%s/api/v1/status/buildinfo", p->url) < 0)
		return err_no_memory(e);
	return 0;
}

int promql_take_options(struct promql *p, const struct promql_options *o, struct err *e)
{
	if (o->timeout_ms < 0)
		return err_set(e, ERR_INPUT, "the query timeout is negative");
	p->http = o->http;
	p->use_get = o->use_get;
	p->asked_kind = p->kind = o->kind;
	p->timeout_ms = o->timeout_ms ? o->timeout_ms : PROMQL_TIMEOUT_MS;
	p->max_body_bytes = o->max_body_bytes ? o->max_body_bytes : HTTP_BODY_BYTES_MAX;
	if (p->max_body_bytes > HTTP_BODY_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "a reply ceiling of %zu bytes is asked for; the ceiling is %d",
		               p->max_body_bytes, HTTP_BODY_BYTES_MAX);
	p->own_budget.max_bytes = PROMQL_ANSWERS_BYTES_MAX;
	p->budget = o->budget ? o->budget : &p->own_budget;
	clock_init_real(&p->own_clock);
	p->clock = o->clock ? o->clock : &p->own_clock;
	char timeout[NUM_TEXT_BYTES];
	num_format_duration_ms(timeout, p->timeout_ms);
	if (asprintf(&p->timeout, "&timeout=%s", timeout) < 0) {
		p->timeout = NULL;
		return err_no_memory(e);
	}
	if (set_urls(p, o->url, e) < 0 || copy_headers(p, o->headers, e) < 0 || http_tls_copy(&p->tls, &o->tls, e) < 0)
		return -1;
	return auth_init(&p->auth, o, clock_mono_ms(p->clock), e);
}

void promql_get_settings(const struct promql *p, struct promql_options *o)
{
	*o = (struct promql_options){.url = p->url,
	                             .kind = p->asked_kind,
	                             .use_get = p->use_get,
	                             .timeout_ms = p->timeout_ms,
	                             .max_body_bytes = p->max_body_bytes,
	                             .tls = {.ca_file = p->tls.ca_file,
	                                     .ca_pem = p->tls.ca_pem,
	                                     .server_name = p->tls.server_name,
	                                     .insecure_skip_verify = p->tls.insecure_skip_verify}};
}

static void replace_text(const char **text, char *by)
{
	free((void *)(uintptr_t)*text);
	*text = by;
}

int promql_set_credentials(struct promql *p, const struct promql_credentials *c, struct err *e)
{
	char *ca, *cert = NULL, *key = NULL, *header = NULL;
	if (c->header && (check_header(c->header, e) < 0 ||
	                  (p->n_headers >= HTTP_HEADERS_MAX && err_set(e, ERR_LIMIT, "too many headers") < 0)))
		return -1;
	if ((c->cert_pem != NULL) != (c->key_pem != NULL))
		return err_set(e, ERR_INPUT, "a client certificate needs a key, and a key a certificate");
	if (copy_text(&ca, c->ca_pem ? c->ca_pem : p->tls.ca_pem, e) < 0 || copy_text(&cert, c->cert_pem, e) < 0 ||
	    copy_text(&key, c->key_pem, e) < 0 || copy_text(&header, c->header, e) < 0 ||
	    auth_set(&p->auth, c, e) < 0) {
		free(ca);
		free(cert);
		free(key);
		free(header);
		return -1;
	}
	replace_text(&p->tls.ca_pem, ca);
	replace_text(&p->tls.cert_pem, cert);
	replace_text(&p->tls.key_pem, key);
	free(p->headers[p->n_headers]);
	p->headers[p->n_headers] = header;
	return 0;
}

void promql_free_options(struct promql *p)
{
	auth_done(&p->auth);
	http_tls_free(&p->tls);
	for (char **h = p->headers; h && *h; h++)
		free(*h);
	free(p->headers);
	free(p->timeout);
	free(p->url);
	free(p->query_url);
	free(p->range_url);
	free(p->buildinfo_url);
}
