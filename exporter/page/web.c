// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/web.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/file_open.h"
#include "base/process/log.h"
#include "base/schema/doc.h"
#include "base/schema/schema_rows.h"
#include "base/timer.h"

// ---- the file ----

#define NOT_SUPPORTED(key, text)                                                                                       \
	{                                                                                                              \
		ROW(key, ANY), IN_PARENT, DOC(text), .unsupported = true                                               \
	}

// The file as decoded by the schema: enums as their indices, paths as written.
struct file {
	struct web_config c;
	bool has_tls, http2;
	const struct doc_node *users;
};

static const char *const auth_names[] = {
        "NoClientCert",
        "RequestClientCert",
        "RequireAnyClientCert",
        "VerifyClientCertIfGiven",
        "RequireAndVerifyClientCert",
        NULL,
};
_Static_assert(COUNT_OF(auth_names) - 1 == HTTP_CLIENT_AUTH__COUNT - HTTP_CLIENT_AUTH_NONE, "one name per kind");
#define AUTH_KIND(index) ((enum http_client_auth)((index) + HTTP_CLIENT_AUTH_NONE))
static const char *const version_names[] = {"TLS12", "TLS13", NULL};
#define VERSION_MINOR(index) ((index) + 2)

// clang-format off
static const struct schema_field tls_fields[] = {
	{ROW("cert_file", STRING), FIELD(struct file, c.tls.tls_cert_file), REQUIRED, RANGE(1, 4096), DOC("Certificate with its chain, PEM.")},
	{ROW("key_file", STRING), FIELD(struct file, c.tls.tls_key_file), REQUIRED, RANGE(1, 4096), DOC("Key of the certificate, PEM.")},
	{ROW("client_auth_type", ENUM), FIELD(struct file, c.tls.tls_client_auth), DEFAULT("NoClientCert"), ONE_OF(auth_names), DOC("Whether client certificates are requested and verified.")},
	{ROW("client_ca_file", STRING), FIELD(struct file, c.tls.tls_client_ca_file), RANGE(1, 4096), DOC("CA of the client certificates, PEM.")},
	{ROW("min_version", ENUM), FIELD(struct file, c.tls.tls_min_minor), DEFAULT("TLS12"), ONE_OF(version_names), DOC("Lowest TLS version.")},
	{ROW("max_version", ENUM), FIELD(struct file, c.tls.tls_max_minor), DEFAULT("TLS13"), ONE_OF(version_names), DOC("Highest TLS version.")},
	NOT_SUPPORTED("cert", "Certificate as text."),
	NOT_SUPPORTED("key", "Key as text."),
	NOT_SUPPORTED("client_ca", "CA certificates as text."),
	NOT_SUPPORTED("client_allowed_sans", "Names that a client certificate must contain."),
	NOT_SUPPORTED("cipher_suites", "Ciphers of TLS 1.2."),
	NOT_SUPPORTED("curve_preferences", "Curves."),
	NOT_SUPPORTED("prefer_server_cipher_suites", "Whether the server chooses the cipher."),
};
static const struct schema_field http_fields[] = {
	{ROW("http2", BOOL), FIELD(struct file, http2), DEFAULT("true"), DOC("Accepted for compatibility; the server always uses HTTP/1.1.")},
	NOT_SUPPORTED("headers", "Headers of every reply."),
};
static const struct schema_field rate_fields[] = {
	{ROW("interval", DURATION_MS), FIELD(struct file, c.rate_interval_ms), DEFAULT("0"), RANGE(0, 86400000), DOC("Time per request beyond the burst; 0: no limit.")},
	{ROW("burst", INT32), FIELD(struct file, c.rate_burst), DEFAULT("20"), RANGE(1, 1000000), DOC("Requests allowed at once.")},
};
// clang-format on

static void tls_validate(const void *value, struct fault_list *l)
{
	const struct http_server_options *tls = &((const struct file *)value)->c.tls;
	enum http_client_auth auth = AUTH_KIND(tls->tls_client_auth);
	if (tls->tls_min_minor > tls->tls_max_minor)
		fault_add(l, "max_version", -1, "is below min_version");
	else if (tls->tls_client_ca_file && auth == HTTP_CLIENT_AUTH_NONE)
		fault_add(l, "client_auth_type", -1,
		          "client_ca_file has no effect without a client_auth_type such as RequireAndVerifyClientCert");
	else if (!tls->tls_client_ca_file &&
	         (auth == HTTP_CLIENT_AUTH_REQUIRE || auth == HTTP_CLIENT_AUTH_VERIFY_IF_GIVEN))
		fault_add(l, "client_auth_type", -1, "verifying client certificates needs a client_ca_file");
}

// clang-format off
static const struct schema tls_schema = {SCHEMA("tls_server_config", struct file, tls_fields), VALIDATE(tls_validate), DOC("TLS.")};
static const struct schema http_schema = {SCHEMA("http_server_config", struct file, http_fields), DOC("HTTP.")};
static const struct schema rate_schema = {SCHEMA("rate_limit", struct file, rate_fields), DOC("Limit on the requests of each client address.")};
static const struct schema_field file_fields[] = {
	{ROW("tls_server_config", OBJECT), IN_PARENT_SET(struct file, has_tls), CHILD(tls_schema), DOC("TLS.")},
	{ROW("http_server_config", OBJECT), IN_PARENT, CHILD(http_schema), DOC("HTTP.")},
	{ROW("basic_auth_users", ANY), FIELD(struct file, users), DOC("User name to bcrypt hash.")},
	{ROW("rate_limit", OBJECT), IN_PARENT, CHILD(rate_schema), DOC("Rate limit.")},
};
static const struct schema file_schema = {SCHEMA("web-config", struct file, file_fields), DOC("How the pages are served.")};
// clang-format on

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

// Completes f->c, in whose arena the paths are kept.
static int keep(struct file *f, const char *name, struct err *e)
{
	struct http_server_options *tls = &f->c.tls;
	const char **const paths[] = {&tls->tls_cert_file, &tls->tls_key_file, &tls->tls_client_ca_file};
	if (!f->has_tls) {
		*tls = (struct http_server_options){.listen = NULL};
		return 0;
	}
	tls->tls_client_auth = AUTH_KIND(tls->tls_client_auth);
	tls->tls_min_minor = VERSION_MINOR(tls->tls_min_minor);
	tls->tls_max_minor = VERSION_MINOR(tls->tls_max_minor);
	for (size_t i = 0; i < COUNT_OF(paths); i++)
		if (*paths[i] && !(*paths[i] = arena_path_beside(&f->c.arena, name, *paths[i])))
			return err_no_memory(e);
	return 0;
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

static int decode(struct file *f, struct arena *a, const char *name, const char *text, size_t len,
                  struct buf *ret_errors, struct err *e)
{
	static const struct doc_node nothing = {.kind = DOC_MAP, .text = ""};
	struct doc_file doc;
	if (doc_parse_yaml(a, name, text, len, &doc, e) < 0)
		return -1;
	if (doc.n_roots > 1)
		return err_set(e, ERR_INPUT, "%s: more than one document", name);
	struct schema_errors *errors = arena_alloc(a, sizeof *errors);
	if (!errors)
		return err_set(e, ERR_LIMIT, "%s: the memory exceeds the ceiling of %d bytes", name,
		               WEB_CONFIG_MEMORY_MAX);
	schema_errors_init(errors, name);
	f->c.no_document = doc.n_roots == 0;
	if (doc.n_roots)
		accept_zero(doc.roots[0]);
	schema_decode(&file_schema, doc.n_roots ? doc.roots[0] : &nothing, f, a, errors, "");
	decode_users(&f->c, f->users, errors);
	if (errors->n > 0) {
		schema_errors_print(errors, ret_errors);
		return err_set(e, ERR_INPUT, "%s: %zu error%s", name, errors->n + errors->dropped,
		               errors->n + errors->dropped == 1 ? "" : "s");
	}
	return keep(f, name, e);
}

int web_config_parse(struct web_config *c, const char *name, const char *text, size_t len, struct buf *ret_errors,
                     struct err *e)
{
	struct file f = {.users = NULL};
	struct arena a;
	arena_init(&a, WEB_CONFIG_MEMORY_MAX);
	arena_init(&f.c.arena, 64 * 1024);
	int rc = decode(&f, &a, name, text, len, ret_errors, e);
	arena_done(&a);
	*c = f.c; // the arena moves with it
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

// ---- its enforcement ----

#define FILES      4 // configuration, certificate, key, client CA
#define ERRORS_MAX (64 * 1024)

struct web {
	const char *path;
	const struct clock *clock;
	struct log *log;
	struct web_config config;
	struct web_auth *auth; // NULL: no basic auth
	struct http_server *server;
	struct event *tick;
	struct file_stamp stamps[FILES]; // stamps of the files, taken just before they were read
	struct file_stamp seen[FILES];   // stamps of the files at the last check
	bool failing;                    // the last change had errors: retry, because a missing file may appear
	char last_error[ERR_MSG_BYTES];
	struct peer_rate rates; // request rates
	struct web_stats stats;
};

static void take_stamps(const struct web *w, const struct web_config *c, struct file_stamp out[FILES])
{
	const char *const paths[FILES] = {w->path, c->tls.tls_cert_file, c->tls.tls_key_file,
	                                  c->tls.tls_client_ca_file};
	for (int i = 0; i < FILES; i++)
		out[i] = file_stamp_of(paths[i]);
}

// Reads the file into `c` and its users into `auth`.
static int load(const struct web *w, struct web_config *c, struct web_auth **auth, struct buf *ret_errors,
                struct err *e)
{
	*auth = NULL;
	if (web_config_read(c, w->path, ret_errors, e) < 0)
		return -1;
	if (c->n_users == 0)
		return 0;
	*auth = web_auth_new(c->users, c->n_users, e);
	if (*auth)
		return 0;
	web_config_done(c);
	return err_wrap(e, "%s", w->path);
}

struct web *web_new(const char *path, const struct clock *clock, struct log *log, struct buf *ret_errors, struct err *e)
{
	struct web *w = err_calloc(sizeof *w, e);
	if (!w)
		return NULL;
	w->path = path;
	w->clock = clock;
	w->log = log;
	struct file_stamp file = file_stamp_of(path);
	if (path && load(w, &w->config, &w->auth, ret_errors, e) < 0) {
		free(w);
		return NULL;
	}
	take_stamps(w, &w->config, w->stamps);
	w->stamps[0] = file;
	return w;
}

void web_free(struct web *w)
{
	if (!w)
		return;
	timer_free(w->tick);
	web_auth_free(w->auth);
	web_config_done(&w->config);
	free(w);
}

const struct http_server_options *web_tls(const struct web *w)
{
	return &w->config.tls;
}

// Stamps are taken before reading: a change in between causes another read and is never missed.
static int reload(struct web *w, struct buf *ret_errors, struct err *e)
{
	struct file_stamp stamps[FILES], file = file_stamp_of(w->path);
	struct web_config c;
	struct web_auth *auth;
	int rc = load(w, &c, &auth, ret_errors, e);
	// An empty file may be half written, or the disk is full: neither may open the pages.
	if (rc == 0 && c.no_document && (w->auth || w->config.tls.tls_cert_file))
		rc = err_set(e, ERR_INPUT, "%s: the file is empty: write {} into it to disable TLS and basic auth",
		             w->path);
	take_stamps(w, &c, stamps);
	stamps[0] = file;
	if (rc < 0 || http_server_set_tls(w->server, &c.tls, e) < 0) {
		web_auth_free(auth);
		web_config_done(&c);
		return -1;
	}
	if (auth && w->auth)
		web_auth_inherit(auth, w->auth);
	web_config_done(&w->config);
	web_auth_free(w->auth);
	w->config = c; // the arena moves with it
	w->auth = auth;
	memcpy(w->stamps, stamps, sizeof stamps);
	return 0;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct web *w = arg;
	struct file_stamp now[FILES];
	struct buf errors;
	struct err e;
	take_stamps(w, &w->config, now);
	bool rests = memcmp(now, w->seen, sizeof now) == 0;
	memcpy(w->seen, now, sizeof now);
	// A file that changed since the last check may be half written, and its users may be missing.
	if (!rests || (!w->failing && memcmp(now, w->stamps, sizeof now) == 0))
		return;
	buf_init(&errors, ERRORS_MAX);
	if (reload(w, &errors, &e) < 0) {
		bool news = !w->failing || strcmp(w->last_error, e.msg) != 0;
		w->failing = true;
		w->stats.reload_errors += news;
		memcpy(w->last_error, e.msg, sizeof e.msg);
		if (news)
			LOG(w->log, LOG_ERROR, "Web configuration reload failed, keeping the previous one",
			    LOG_S("file", w->path), LOG_S("err", e.msg), LOG_S("faults", buf_str(&errors)));
	} else {
		w->failing = false;
		w->stats.reloads++;
		LOG(w->log, LOG_INFO, "Web configuration reloaded", LOG_S("file", w->path),
		    LOG_B("tls", w->config.tls.tls_cert_file != NULL), LOG_I("users", (int64_t)w->config.n_users));
	}
	buf_done(&errors);
}

int web_watch(struct web *w, struct event_base *loop, struct http_server *server, struct err *e)
{
	w->server = server;
	if (!w->path)
		return 0;
	w->tick = event_new(loop, -1, EV_PERSIST, on_tick, w);
	if (!w->tick || timer_start(w->tick, WEB_WATCH_MS) < 0)
		return err_set(e, ERR_INTERNAL, "cannot create a timer");
	return 0;
}

static bool refuse_later(struct web *w, struct http_exchange *x)
{
	w->stats.limited++;
	http_exchange_set_header(x, "Retry-After", "1");
	http_exchange_reply_text(x, 429, "too many requests");
	return false;
}

bool web_admit(struct web *w, struct http_exchange *x)
{
	int64_t now_ms = clock_mono_ms(w->clock), interval_ms = w->config.rate_interval_ms;
	const char *peer = http_exchange_peer(x);
	// Each address has its own bucket, so that no address uses up the requests of another.
	if (interval_ms && !peer_rate_take(&peer_rate_add(&w->rates, peer, false, now_ms)->full_ms, interval_ms,
	                                   w->config.rate_burst, now_ms))
		return refuse_later(w, x);
	if (!w->auth)
		return true;
	switch (web_auth_check(w->auth, http_exchange_header(x, "Authorization"), peer, now_ms)) {
	case WEB_AUTH_GOOD:
		return true;
	case WEB_AUTH_LATER:
		return refuse_later(w, x);
	default:
		w->stats.unauthorized++;
		http_exchange_set_header(x, "WWW-Authenticate", "Basic");
		http_exchange_reply_text(x, 401, "Unauthorized");
		return false;
	}
}

void web_get_stats(const struct web *w, struct web_stats *ret_stats)
{
	*ret_stats = w->stats;
}
