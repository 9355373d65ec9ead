// SPDX-License-Identifier: Apache-2.0
// The workload identity of a cloud: how the controller's own pod gets a token for a managed Prometheus. This file has
// the requests for tokens and their responses; promql/promql_detect.c sends them.
//
// Google: the metadata server. Amazon: STS for the role of the service account (IRSA), or the credentials endpoint of
// EKS Pod Identity and ECS. Azure: the token endpoint, for the federated token of the service account. The places come
// from the environment variables that each cloud sets in a pod, as in its own SDKs.
#include <cjson/cJSON.h>

#include "base/base.h"
#include "base/http/http_text.h"
#include "base/json/json_read.h"
#include "promql/promql_private.h"

#define COUNT_OF(a)    (sizeof(a) / sizeof((a)[0]))
#define BODY_BYTES_MAX (3 * PROMQL_SECRET_BYTES_MAX + 4096)
#define AMAZON_SERVICE "aps"
#define AZURE_SCOPE    "https://prometheus.monitor.azure.com/.default"
#define AZURE_LOGIN    "https://login.microsoftonline.com/"
#define GOOGLE_HOST    "metadata.google.internal"

const char *const promql_identity_names[] = {
        [PROMQL_IDENTITY_NONE] = "None",
        [PROMQL_IDENTITY_GOOGLE] = "Google",
        [PROMQL_IDENTITY_AMAZON] = "Amazon",
        [PROMQL_IDENTITY_AZURE] = "Azure",
        NULL,
};
_Static_assert(sizeof promql_identity_names / sizeof promql_identity_names[0] == PROMQL_IDENTITY__COUNT + 1,
               "one name per identity");

static const char *variable(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] ? value : NULL;
}

static int missing(const char *name, const char *fix, struct err *e)
{
	return err_set(e, ERR_INPUT, "$%s is not set: %s", name, fix);
}

static bool is_region(const char *text)
{
	size_t n = strlen(text);
	return n > 0 && n < PROMQL_REGION_MAX && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static const char *region_of(const char *region)
{
	return region ? region : variable("AWS_REGION");
}

int identity_check(enum promql_identity kind, const char *region, char ret_scope[PROMQL_REGION_MAX + 16], struct err *e)
{
	ret_scope[0] = '\0';
	if (kind != PROMQL_IDENTITY_AMAZON)
		return 0;
	region = region_of(region);
	if (!region)
		return missing("AWS_REGION", "set region of the source", e);
	if (!is_region(region))
		return err_set(e, ERR_INPUT, "\"%.40s\" is not a valid region of Amazon: write one such as eu-west-1",
		               region);
	snprintf(ret_scope, PROMQL_REGION_MAX + 16, "aws:amz:%s:" AMAZON_SERVICE, region);
	return 0;
}

// ---- requests ----

// Tokens travel only through TLS, or to a place that no other host can listen at: this host, or the link-local
// addresses of the credentials endpoints.
static bool is_safe(const char *url)
{
	static const char *const plain[] = {"127.0.0.1",     "localhost",      "[::1]",
	                                    "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
	if (strncmp(url, "https://", 8) == 0)
		return true;
	for (size_t i = 0; strncmp(url, "http://", 7) == 0 && i < sizeof plain / sizeof plain[0]; i++) {
		size_t n = strlen(plain[i]);
		if (strncmp(url + 7, plain[i], n) == 0 && (url[7 + n] == ':' || url[7 + n] == '/'))
			return true;
	}
	return false;
}

static int set_url(struct identity_request *r, const char *from, struct err *e)
{
	if (strlen(r->url) + 1 >= sizeof r->url)
		return err_set(e, ERR_LIMIT, "the URL of the token endpoint is too long");
	return is_safe(r->url) ? 0
	                       : err_set(e, ERR_INPUT,
	                                 "$%s is neither https:// nor an address of this host: a token must not be "
	                                 "sent in plain text",
	                                 from);
}

// Reads a token file, which must contain one line.
static int read_token(const char *path, struct buf *out, struct err *e)
{
	buf_init(out, PROMQL_SECRET_BYTES_MAX);
	if (buf_read_file(out, path, e) < 0)
		return -1;
	while (out->len > 0 && (out->data[out->len - 1] == '\n' || out->data[out->len - 1] == '\r'))
		out->data[--out->len] = '\0';
	if (out->len == 0)
		return err_set(e, ERR_INPUT, "%s is empty", path);
	return http_is_credential(out->data, out->len)
	               ? 0
	               : err_set(e, ERR_INPUT, "%s holds a blank or control character: it must hold one token", path);
}

struct field {
	const char *name, *value; // value NULL: the token
};

// Fills the body: a form with the token of the file.
static int fill_form(struct identity_request *r, const struct field *fields, size_t n, const char *file, struct err *e)
{
	struct buf token;
	int rc = read_token(file, &token, e);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		buf_printf(&r->body, "%s%s=", i > 0 ? "&" : "", fields[i].name);
		http_append_urlencoded(&r->body, fields[i].value ? fields[i].value : buf_str(&token));
	}
	buf_wipe(&token);
	r->method = "POST";
	r->headers[0] = "Content-Type: application/x-www-form-urlencoded";
	return rc == 0 && r->body.failed ? err_set(e, ERR_LIMIT, "the request for a token is too long") : rc;
}

static int fill_google(struct identity_request *r)
{
	const char *host = variable("GCE_METADATA_HOST");
	r->method = "GET";
	r->headers[0] = "Metadata-Flavor: Google";
	snprintf(r->url, sizeof r->url, "http://%.255s/computeMetadata/v1/instance/service-accounts/default/token",
	         host ? host : GOOGLE_HOST);
	return 0;
}

static int fill_amazon_role(struct identity_request *r, const char *region, const char *role, const char *file,
                            struct err *e)
{
	const struct field fields[] = {{"Action", "AssumeRoleWithWebIdentity"},
	                               {"Version", "2011-06-15"},
	                               {"RoleArn", role},
	                               {"RoleSessionName", "gpuscale"},
	                               {"WebIdentityToken", NULL}};
	const char *url = variable("AWS_ENDPOINT_URL_STS");
	if (url)
		snprintf(r->url, sizeof r->url, "%.2047s", url);
	else
		snprintf(r->url, sizeof r->url, "https://sts.%s.amazonaws.com%s/", region,
		         strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
	return set_url(r, "AWS_ENDPOINT_URL_STS", e) < 0 ? -1 : fill_form(r, fields, COUNT_OF(fields), file, e);
}

static int fill_amazon_endpoint(struct identity_request *r, const char *url, struct err *e)
{
	const char *file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	struct buf token;
	r->method = "GET";
	snprintf(r->url, sizeof r->url, "%.2047s", url);
	if (set_url(r, "AWS_CONTAINER_CREDENTIALS_FULL_URI", e) < 0)
		return -1;
	if (!file)
		return 0;
	int rc = read_token(file, &token, e);
	if (rc == 0) {
		buf_printf(&r->header, "Authorization: %s", buf_str(&token));
		r->headers[0] = buf_str(&r->header);
	}
	buf_wipe(&token);
	return rc;
}

static int fill_amazon(struct identity_request *r, const char *region, struct err *e)
{
	const char *role = variable("AWS_ROLE_ARN"), *file = variable("AWS_WEB_IDENTITY_TOKEN_FILE");
	const char *url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	region = region_of(region);
	if (role && file && region)
		return fill_amazon_role(r, region, role, file, e);
	if (url)
		return fill_amazon_endpoint(r, url, e);
	return missing("AWS_WEB_IDENTITY_TOKEN_FILE",
	               "annotate the service account with a role (IRSA), or associate one with it (EKS Pod Identity)",
	               e);
}

static int fill_azure(struct identity_request *r, struct err *e)
{
	static const char fix[] =
	        "label the pod azure.workload.identity/use: \"true\", and annotate its service account";
	const char *client = variable("AZURE_CLIENT_ID"), *tenant = variable("AZURE_TENANT_ID");
	const char *file = variable("AZURE_FEDERATED_TOKEN_FILE"), *login = variable("AZURE_AUTHORITY_HOST");
	const struct field fields[] = {
	        {"client_id", client},
	        {"grant_type", "client_credentials"},
	        {"scope", AZURE_SCOPE},
	        {"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	        {"client_assertion", NULL}};
	if (!client || !tenant || !file)
		return missing(!client   ? "AZURE_CLIENT_ID"
		               : !tenant ? "AZURE_TENANT_ID"
		                         : "AZURE_FEDERATED_TOKEN_FILE",
		               fix, e);
	login = login ? login : AZURE_LOGIN;
	snprintf(r->url, sizeof r->url, "%.1900s%s%.200s/oauth2/v2.0/token", login,
	         login[strlen(login) - 1] == '/' ? "" : "/", tenant);
	return set_url(r, "AZURE_AUTHORITY_HOST", e) < 0 ? -1 : fill_form(r, fields, COUNT_OF(fields), file, e);
}

int identity_request_fill(struct identity_request *r, enum promql_identity kind, const char *region, struct err *e)
{
	*r = (struct identity_request){0};
	buf_init(&r->header, PROMQL_SECRET_BYTES_MAX + 64);
	buf_init(&r->body, BODY_BYTES_MAX);
	switch (kind) {
	case PROMQL_IDENTITY_GOOGLE:
		return fill_google(r);
	case PROMQL_IDENTITY_AMAZON:
		return fill_amazon(r, region, e);
	case PROMQL_IDENTITY_AZURE:
		return fill_azure(r, e);
	case PROMQL_IDENTITY_NONE:
	case PROMQL_IDENTITY__COUNT:
		break;
	}
	return err_set(e, ERR_INTERNAL, "no identity is configured");
}

void identity_request_done(struct identity_request *r)
{
	buf_wipe(&r->header);
	buf_wipe(&r->body);
}

// ---- responses ----

static int malformed(const char *what, struct err *e)
{
	return err_set(e, ERR_PROTOCOL, "the answer of the token endpoint has no usable %s", what);
}

// Copies a credential, which must be text for a header.
static int take(char **ret, const char *text, size_t len, const char *what, struct err *e)
{
	if (len > PROMQL_SECRET_BYTES_MAX || !http_is_credential(text, len))
		return malformed(what, e);
	*ret = strndup(text, len);
	return *ret ? 0 : err_no_memory(e);
}

static int take_lifetime(struct identity_token *t, int64_t lifetime_ms, struct err *e)
{
	if (lifetime_ms < IDENTITY_LIFETIME_MIN_MS)
		return err_set(e, ERR_PROTOCOL, "the token endpoint returned a token that has expired");
	t->lifetime_ms = lifetime_ms < IDENTITY_LIFETIME_MAX_MS ? lifetime_ms : IDENTITY_LIFETIME_MAX_MS;
	return 0;
}

static int take_expiration(struct identity_token *t, const char *text, size_t len, int64_t now_wall_ms, struct err *e)
{
	int64_t at_ms;
	struct err unused;
	if (num_parse_rfc3339_ms(text, len, &at_ms, &unused) < 0)
		return malformed("Expiration", e);
	return take_lifetime(t, at_ms - now_wall_ms, e);
}

static int take_member(char **ret, const cJSON *o, const char *name, struct err *e)
{
	const char *text = json_get_str(o, name, "");
	return take(ret, text, strlen(text), name, e);
}

// OAuth 2.0 (RFC 6749, section 5.1). Azure's older endpoints write the number as a string.
static int read_bearer(const cJSON *o, struct identity_token *t, struct err *e)
{
	const cJSON *expires = json_get(o, "expires_in");
	int64_t seconds = 0;
	struct err unused;
	if (cJSON_IsString(expires))
		num_parse_i64(expires->valuestring, strlen(expires->valuestring), 0, IDENTITY_LIFETIME_MAX_MS / 1000,
		              &seconds, &unused);
	else if (cJSON_IsNumber(expires) && expires->valuedouble > 0)
		seconds = expires->valuedouble < (double)IDENTITY_LIFETIME_MAX_MS / 1000
		                  ? (int64_t)expires->valuedouble
		                  : IDENTITY_LIFETIME_MAX_MS / 1000;
	if (!expires)
		return malformed("expires_in", e);
	return take_member(&t->secret, o, "access_token", e) < 0 ? -1 : take_lifetime(t, seconds * 1000, e);
}

static int read_container(const cJSON *o, int64_t now_wall_ms, struct identity_token *t, struct err *e)
{
	const char *expires = json_get_str(o, "Expiration", "");
	if (take_member(&t->key_id, o, "AccessKeyId", e) < 0 || take_member(&t->secret, o, "SecretAccessKey", e) < 0 ||
	    take_member(&t->session, o, "Token", e) < 0)
		return -1;
	return take_expiration(t, expires, strlen(expires), now_wall_ms, e);
}

// Returns the text of the first element <name> without attributes; *ret_len 0: there is none. What STS writes there
// needs no escapes.
static const char *element(const char *body, size_t len, const char *name, size_t *ret_len)
{
	char open[40], close[40];
	int n_open = snprintf(open, sizeof open, "<%s>", name), n_close = snprintf(close, sizeof close, "</%s>", name);
	const char *from = memmem(body, len, open, (size_t)n_open);
	*ret_len = 0;
	if (!from)
		return body;
	from += n_open;
	const char *to = memmem(from, len - (size_t)(from - body), close, (size_t)n_close);
	*ret_len = to ? (size_t)(to - from) : 0;
	return from;
}

static int read_sts(const char *body, size_t len, int64_t now_wall_ms, struct identity_token *t, struct err *e)
{
	const struct {
		const char *name;
		char **to;
	} parts[] = {{"AccessKeyId", &t->key_id}, {"SecretAccessKey", &t->secret}, {"SessionToken", &t->session}};
	size_t n;
	const char *text;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		text = element(body, len, parts[i].name, &n);
		if (take(parts[i].to, text, n, parts[i].name, e) < 0)
			return -1;
	}
	text = element(body, len, "Expiration", &n);
	return take_expiration(t, text, n, now_wall_ms, e);
}

int identity_answer_read(enum promql_identity kind, const char *body, size_t len, int64_t now_wall_ms,
                         struct identity_token *ret_token, struct err *e)
{
	struct err parse;
	*ret_token = (struct identity_token){0};
	int rc;
	if (kind == PROMQL_IDENTITY_AMAZON && len > 0 && body[0] == '<') {
		rc = read_sts(body, len, now_wall_ms, ret_token, e);
	} else {
		cJSON *o = json_read(body, len, &parse);
		if (!o)
			rc = malformed("JSON", e);
		else if (kind == PROMQL_IDENTITY_AMAZON)
			rc = read_container(o, now_wall_ms, ret_token, e);
		else
			rc = read_bearer(o, ret_token, e);
		cJSON_Delete(o);
	}
	if (rc < 0)
		identity_token_done(ret_token);
	return rc;
}

void identity_token_done(struct identity_token *t)
{
	char *const texts[] = {t->secret, t->key_id, t->session};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		alloc_wipe(texts[i]);
	*t = (struct identity_token){0};
}
