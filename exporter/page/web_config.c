// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/web_config.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FIELD(parent, key, kind, member, ...)                                                                          \
	{                                                                                                              \
		.name = key, .type = kind, .offset = offsetof(parent, member), .set_offset = SCHEMA_NO_OFFSET,         \
		.count_offset = SCHEMA_NO_OFFSET, __VA_ARGS__                                                          \
	}

// The file as decoded by the schema.
struct tls_section {
	const char *cert_file, *key_file, *client_ca_file;
	int client_auth, min_version, max_version;
	const struct doc_node *not_supported;
};
struct rate_section {
	int64_t interval_ms;
	int32_t burst;
};
struct http_section {
	bool http2;
	const struct doc_node *not_supported;
};
struct file {
	struct tls_section tls;
	bool has_tls;
	struct http_section http;
	const struct doc_node *users;
	struct rate_section rate;
};

static const char *const auth_names[] = {
        "NoClientCert",
        "RequestClientCert",
        "RequireAnyClientCert",
        "VerifyClientCertIfGiven",
        "RequireAndVerifyClientCert",
        NULL,
};
static const enum http_client_auth auth_kinds[] = {HTTP_CLIENT_AUTH_NONE, HTTP_CLIENT_AUTH_REQUEST,
                                                   HTTP_CLIENT_AUTH_REQUIRE_ANY, HTTP_CLIENT_AUTH_VERIFY_IF_GIVEN,
                                                   HTTP_CLIENT_AUTH_REQUIRE};
_Static_assert(COUNT(auth_names) == COUNT(auth_kinds) + 1, "one kind per name");
static const char *const version_names[] = {"TLS12", "TLS13", NULL};
#define VERSION_MINOR(index) ((index) + 2)

#define NOT_SUPPORTED(key, text)                                                                                       \
	FIELD(struct tls_section, key, SCHEMA_ANY, not_supported, .doc = text, .unsupported = true)
static const struct schema_field tls_fields[] = {
        FIELD(struct tls_section, "cert_file", SCHEMA_STRING, cert_file, .doc = "Certificate with its chain, PEM.",
              .required = true, .min = 1, .max = 4096),
        FIELD(struct tls_section, "key_file", SCHEMA_STRING, key_file, .doc = "Key of the certificate, PEM.",
              .required = true, .min = 1, .max = 4096),
        FIELD(struct tls_section, "client_auth_type", SCHEMA_ENUM, client_auth,
              .doc = "Whether client certificates are requested and verified.", .default_text = "NoClientCert",
              .enum_names = auth_names),
        FIELD(struct tls_section, "client_ca_file", SCHEMA_STRING, client_ca_file,
              .doc = "CA of the client certificates, PEM.", .min = 1, .max = 4096),
        FIELD(struct tls_section, "min_version", SCHEMA_ENUM, min_version, .doc = "Lowest TLS version.",
              .default_text = "TLS12", .enum_names = version_names),
        FIELD(struct tls_section, "max_version", SCHEMA_ENUM, max_version, .doc = "Highest TLS version.",
              .default_text = "TLS13", .enum_names = version_names),
        NOT_SUPPORTED("cert", "Certificate as text."),
        NOT_SUPPORTED("key", "Key as text."),
        NOT_SUPPORTED("client_ca", "CA certificates as text."),
        NOT_SUPPORTED("client_allowed_sans", "Names that a client certificate must contain."),
        NOT_SUPPORTED("cipher_suites", "Ciphers of TLS 1.2."),
        NOT_SUPPORTED("curve_preferences", "Curves."),
        NOT_SUPPORTED("prefer_server_cipher_suites", "Whether the server chooses the cipher."),
};
static size_t tls_validate(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct tls_section *t = value;
	enum http_client_auth auth = auth_kinds[t->client_auth];
	if (t->min_version > t->max_version)
		return schema_fault_put(ret_faults, max, "max_version", "is below min_version");
	if (t->client_ca_file && auth == HTTP_CLIENT_AUTH_NONE)
		return schema_fault_put(
		        ret_faults, max, "client_auth_type",
		        "client_ca_file has no effect without a client_auth_type such as RequireAndVerifyClientCert");
	if (!t->client_ca_file && (auth == HTTP_CLIENT_AUTH_REQUIRE || auth == HTTP_CLIENT_AUTH_VERIFY_IF_GIVEN))
		return schema_fault_put(ret_faults, max, "client_auth_type",
		                        "verifying client certificates needs a client_ca_file");
	return 0;
}
static const struct schema tls_schema = {.name = "tls_server_config",
                                         .doc = "TLS.",
                                         .struct_size = sizeof(struct tls_section),
                                         .fields = tls_fields,
                                         .n_fields = COUNT(tls_fields),
                                         .validate = tls_validate};

static const struct schema_field http_fields[] = {
        FIELD(struct http_section, "http2", SCHEMA_BOOL, http2,
              .doc = "Accepted for compatibility; the server always uses HTTP/1.1.", .default_text = "true"),
        FIELD(struct http_section, "headers", SCHEMA_ANY, not_supported, .doc = "Headers of every reply.",
              .unsupported = true),
};
static const struct schema http_schema = {.name = "http_server_config",
                                          .doc = "HTTP.",
                                          .struct_size = sizeof(struct http_section),
                                          .fields = http_fields,
                                          .n_fields = COUNT(http_fields)};

static const struct schema_field rate_fields[] = {
        FIELD(struct rate_section, "interval", SCHEMA_DURATION_MS, interval_ms,
              .doc = "Time per request beyond the burst; 0: no limit.", .default_text = "0", .max = 86400000),
        FIELD(struct rate_section, "burst", SCHEMA_INT32, burst, .doc = "Requests allowed at once.",
              .default_text = "20", .min = 1, .max = 1000000),
};
static const struct schema rate_schema = {.name = "rate_limit",
                                          .doc = "Limit on the requests of each client address.",
                                          .struct_size = sizeof(struct rate_section),
                                          .fields = rate_fields,
                                          .n_fields = COUNT(rate_fields)};

static const struct schema_field file_fields[] = {
        {.name = "tls_server_config",
         .type = SCHEMA_OBJECT,
         .offset = offsetof(struct file, tls),
         .set_offset = offsetof(struct file, has_tls),
         .count_offset = SCHEMA_NO_OFFSET,
         .doc = "TLS.",
         .child = &tls_schema},
        FIELD(struct file, "http_server_config", SCHEMA_OBJECT, http, .doc = "HTTP.", .child = &http_schema),
        FIELD(struct file, "basic_auth_users", SCHEMA_ANY, users, .doc = "User name to bcrypt hash."),
        FIELD(struct file, "rate_limit", SCHEMA_OBJECT, rate, .doc = "Rate limit.", .child = &rate_schema),
};
static const struct schema file_schema = {.name = "web-config",
                                          .doc = "How the pages are served.",
                                          .struct_size = sizeof(struct file),
                                          .fields = file_fields,
                                          .n_fields = COUNT(file_fields)};

// Returns NULL, or what is wrong with a hash.
static const char *hash_fault(const char *hash, size_t len)
{
	static const char alphabet[] = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	int64_t cost;
	if (len != WEB_CONFIG_HASH_BYTES || hash[0] != '$' || hash[1] != '2' || !strchr("aby", hash[2]) ||
	    hash[3] != '$' || hash[6] != '$' || strspn(hash + 7, alphabet) != WEB_CONFIG_HASH_BYTES - 7)
		return "is not a bcrypt hash: create one with `htpasswd -nBC 10 \"\"`";
	if (num_parse_i64(hash + 4, 2, 4, 31, &cost, NULL) < 0)
		return "has a bcrypt cost outside 04 .. 31";
	if (cost > WEB_CONFIG_COST_MAX)
		return "has a bcrypt cost above 12: a login would block every page for longer than 0.2 s";
	return NULL;
}

static void decode_users(struct web_config *c, const struct doc_node *users, struct schema_errors *errors)
{
	if (!users || users->kind == DOC_NULL)
		return;
	if (users->kind != DOC_MAP) {
		schema_report(errors, users, "basic_auth_users", "must be a map from a user name to a bcrypt hash");
		return;
	}
	for (const struct doc_node *u = users->child; u; u = u->next) {
		const char *why = u->kind == DOC_SCALAR ? hash_fault(u->text, u->text_len) : "must be a bcrypt hash";
		size_t len = strlen(u->key);
		if (len == 0 || len >= WEB_CONFIG_USER_BYTES || strchr(u->key, ':'))
			schema_report_at(errors, u->key_line, u->key_col, "basic_auth_users",
			                 "a user name has 1 to %d bytes and no colon", WEB_CONFIG_USER_BYTES - 1);
		else if (why) // the hash itself is not shown: messages end in logs
			schema_report(errors, u, "basic_auth_users", "the value of user \"%s\" %s", u->key, why);
		else if (c->n_users == WEB_CONFIG_USERS_MAX)
			schema_report(errors, u, "basic_auth_users", "more than %d users", WEB_CONFIG_USERS_MAX);
		else {
			struct web_user *user = &c->users[c->n_users++];
			memcpy(user->name, u->key, len + 1);
			memcpy(user->hash, u->text, WEB_CONFIG_HASH_BYTES + 1);
		}
	}
}

// Copies a path into the arena, relative to the folder of the file.
static int keep_path(struct web_config *c, const char *file, const char *path, const char **ret_path, struct err *e)
{
	const char *slash = strrchr(file, '/');
	*ret_path = NULL;
	if (!path)
		return 0;
	if (path[0] == '/' || !slash)
		*ret_path = arena_strdup(&c->arena, path);
	else
		*ret_path = arena_printf(&c->arena, "%.*s/%s", (int)(slash - file), file, path);
	return *ret_path ? 0 : err_no_memory(e);
}

static int keep(struct web_config *c, const char *name, const struct file *f, struct err *e)
{
	c->rate_interval_ms = f->rate.interval_ms;
	c->rate_burst = f->rate.burst;
	if (!f->has_tls)
		return 0;
	c->client_auth = auth_kinds[f->tls.client_auth];
	c->tls_min_minor = VERSION_MINOR(f->tls.min_version);
	c->tls_max_minor = VERSION_MINOR(f->tls.max_version);
	if (keep_path(c, name, f->tls.cert_file, &c->cert_file, e) < 0 ||
	    keep_path(c, name, f->tls.key_file, &c->key_file, e) < 0)
		return -1;
	return keep_path(c, name, f->tls.client_ca_file, &c->client_ca_file, e);
}

// Prometheus also reads the number 0 as a duration, which means no limit; the schema requires a unit.
static void accept_zero(struct doc_node *root)
{
	for (struct doc_node *r = root->kind == DOC_MAP ? root->child : NULL; r; r = r->next)
		for (struct doc_node *i = r->kind == DOC_MAP ? r->child : NULL; i; i = i->next)
			if (strcmp(r->key, "rate_limit") == 0 && strcmp(i->key, "interval") == 0 &&
			    i->kind == DOC_SCALAR && strcmp(i->text, "0") == 0)
				i->quoted = true;
}

static int decode(struct web_config *c, struct arena *a, const char *name, const char *text, size_t len,
                  struct buf *ret_errors, struct err *e)
{
	static const struct doc_node nothing = {.kind = DOC_MAP, .text = ""};
	struct doc_file doc;
	struct file f = {.users = NULL};
	if (doc_parse_yaml(a, name, text, len, &doc, e) < 0)
		return -1;
	if (doc.n_roots > 1)
		return err_set(e, ERR_INPUT, "%s: more than one document", name);
	struct schema_errors *errors = arena_alloc(a, sizeof *errors);
	if (!errors)
		return err_set(e, ERR_LIMIT, "%s: the memory exceeds the ceiling of %d bytes", name,
		               WEB_CONFIG_MEMORY_MAX);
	schema_errors_init(errors, name);
	c->no_document = doc.n_roots == 0;
	if (doc.n_roots)
		accept_zero(doc.roots[0]);
	schema_decode(&file_schema, doc.n_roots ? doc.roots[0] : &nothing, &f, a, errors, "");
	decode_users(c, f.users, errors);
	if (errors->n > 0) {
		schema_errors_print(errors, ret_errors);
		return err_set(e, ERR_INPUT, "%s: %zu error%s", name, errors->n + errors->dropped,
		               errors->n + errors->dropped == 1 ? "" : "s");
	}
	return keep(c, name, &f, e);
}

int web_config_parse(struct web_config *c, const char *name, const char *text, size_t len, struct buf *ret_errors,
                     struct err *e)
{
	struct arena a;
	memset(c, 0, sizeof *c);
	arena_init(&a, WEB_CONFIG_MEMORY_MAX);
	arena_init(&c->arena, 64 * 1024);
	int rc = decode(c, &a, name, text, len, ret_errors, e);
	arena_done(&a);
	if (rc < 0)
		web_config_done(c);
	return rc;
}

int web_config_read(struct web_config *c, const char *path, struct buf *ret_errors, struct err *e)
{
	struct buf text;
	memset(c, 0, sizeof *c);
	buf_init(&text, DOC_BYTES_MAX);
	int rc = buf_read_file(&text, path, e);
	if (rc == 0)
		rc = web_config_parse(c, path, buf_str(&text), text.len, ret_errors, e);
	buf_done(&text);
	return rc;
}

void web_config_done(struct web_config *c)
{
	if (c->arena.max_bytes)
		arena_done(&c->arena);
	memset(c, 0, sizeof *c);
}
