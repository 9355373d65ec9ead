// SPDX-License-Identifier: Apache-2.0
// Checks and copies the options of a client (URL, headers, TLS) once, before a request is sent.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/num.h"
#include "promql/promql_private.h"

#define URL_BYTES_MAX    2048
#define HEADER_BYTES_MAX 8192

static int check_url(const char *url, struct err *e)
{
	const char *host = NULL;
	if (url && strncmp(url, "http://", 7) == 0)
		host = url + 7;
	else if (url && strncmp(url, "https://", 8) == 0)
		host = url + 8;
	if (!host || !*host || *host == '/' || *host == ':')
		return err_set(e, ERR_INPUT,
		               "the Prometheus URL must look like http://host:9090 or https://host/prefix");
	if (strlen(url) > URL_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the Prometheus URL has %zu bytes; the ceiling is %d", strlen(url),
		               URL_BYTES_MAX);
	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f)
			return err_set(e, ERR_INPUT,
			               "the Prometheus URL holds a blank, control or non-ASCII character");
	// The URL itself is not repeated here: the part before '@' may be a password.
	if (memchr(host, '@', strcspn(host, "/")))
		return err_set(e, ERR_INPUT,
		               "the Prometheus URL holds credentials: use a basic user with a password file");
	if (strpbrk(url, "?#"))
		return err_set(e, ERR_INPUT, "the Prometheus URL %s must end before '?' or '#'", url);
	return 0;
}

static bool is_token_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c)); // RFC 9110, section 5.6.2
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
	size_t n = 0;
	while (is_token_char(header[n]))
		n++;
	if (n == 0 || header[n] != ':')
		return err_set(e, ERR_INPUT, "a custom header must look like \"Name: value\"");
	if (is_own_header(header, n))
		return err_set(e, ERR_INPUT, "header %.*s cannot be set: it belongs to the query itself", (int)n,
		               header);
	if (strlen(header) > HEADER_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "header %.*s has %zu bytes; the ceiling is %d", (int)(n < 80 ? n : 80),
		               header, strlen(header), HEADER_BYTES_MAX);
	for (const char *c = header + n; *c; c++)
		if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
			return err_set(e, ERR_INPUT, "the value of header %.*s holds a control character",
			               (int)(n < 80 ? n : 80), header);
	return 0;
}

static int copy_text(const char **ret, const char *text, struct err *e)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? err_no_memory(e) : 0;
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

static int copy_tls(struct http_tls *to, const struct http_tls *from, struct err *e)
{
	to->insecure_skip_verify = from->insecure_skip_verify;
	if (copy_text(&to->ca_file, from->ca_file, e) < 0 || copy_text(&to->ca_pem, from->ca_pem, e) < 0 ||
	    copy_text(&to->cert_file, from->cert_file, e) < 0 || copy_text(&to->cert_pem, from->cert_pem, e) < 0 ||
	    copy_text(&to->key_file, from->key_file, e) < 0 || copy_text(&to->key_pem, from->key_pem, e) < 0 ||
	    copy_text(&to->server_name, from->server_name, e) < 0)
		return -1;
	return 0;
}

static void free_tls(struct http_tls *tls)
{
	const char *const texts[] = {tls->ca_file,  tls->ca_pem,  tls->cert_file,  tls->cert_pem,
	                             tls->key_file, tls->key_pem, tls->server_name};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		free((void *)(uintptr_t)texts[i]);
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
	if (set_urls(p, o->url, e) < 0 || copy_headers(p, o->headers, e) < 0 || copy_tls(&p->tls, &o->tls, e) < 0)
		return -1;
	return promql_auth_init(&p->auth, o, clock_mono_ms(p->clock), e);
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

static void replace_text(const char **text, const char *by)
{
	free((void *)(uintptr_t)*text);
	*text = by;
}

int promql_set_credentials(struct promql *p, const struct promql_credentials *c, struct err *e)
{
	const char *ca, *cert = NULL, *key = NULL, *header = NULL;
	if (c->header && (check_header(c->header, e) < 0 ||
	                  (p->n_headers >= HTTP_HEADERS_MAX && err_set(e, ERR_LIMIT, "too many headers") < 0)))
		return -1;
	if ((c->cert_pem != NULL) != (c->key_pem != NULL))
		return err_set(e, ERR_INPUT, "a client certificate needs a key, and a key a certificate");
	if (copy_text(&ca, c->ca_pem ? c->ca_pem : p->tls.ca_pem, e) < 0 || copy_text(&cert, c->cert_pem, e) < 0 ||
	    copy_text(&key, c->key_pem, e) < 0 || copy_text(&header, c->header, e) < 0 ||
	    promql_auth_set(&p->auth, c, e) < 0) {
		replace_text(&ca, NULL);
		replace_text(&cert, NULL);
		replace_text(&key, NULL);
		replace_text(&header, NULL);
		return -1;
	}
	replace_text(&p->tls.ca_pem, ca);
	replace_text(&p->tls.cert_pem, cert);
	replace_text(&p->tls.key_pem, key);
	free(p->headers[p->n_headers]);
	p->headers[p->n_headers] = (char *)(uintptr_t)header;
	return 0;
}

void promql_free_options(struct promql *p)
{
	promql_auth_done(&p->auth);
	free_tls(&p->tls);
	for (char **h = p->headers; h && *h; h++)
		free(*h);
	free(p->headers);
	free(p->timeout);
	free(p->url);
	free(p->query_url);
	free(p->range_url);
	free(p->buildinfo_url);
}
