// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/serve_options.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <strings.h>

#include "base/base.h"
#include "base/file_open.h"
#include "base/http/http_server.h"
#include "base/print.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "policies/load/file_set.h"
#include "runtime/metrics/metrics.h"
#include "runtime/options/flag_table.h"

void serve_options_init(struct serve_options *o)
{
	*o = (struct serve_options){.tls_min_minor = 2, .metrics_policies = METRICS_POLICIES_MAX};
}

static void set_min_version(void *to, char *arg, struct argp_state *state)
{
	static const char *const versions[] = {"1.2", "1.3", "VersionTLS12", "VersionTLS13", NULL};
	*(int *)to = option_choice("--tls-min-version", arg, versions, state) % 2 + 2;
}

static void set_external_metrics(void *to, char *arg, struct argp_state *state)
{
	*(const char **)to = arg ? arg : EXTERNAL_METRICS_LISTEN;
}

static void check(void *options, struct argp_state *state)
{
	const struct serve_options *o = options;
	if (!o->tls_cert_file != !o->tls_key_file)
		print_usage(state, "--tls-cert-file and --tls-key-file go together");
	if (o->tls_client_ca_file && !o->tls_cert_file)
		print_usage(state, "--tls-client-ca-file needs --tls-cert-file and --tls-key-file");
	if (!o->external_metrics_cert_file != !o->external_metrics_key_file)
		print_usage(state, "--external-metrics-cert-file and --external-metrics-key-file go together");
	if (o->external_metrics_cert_file && !o->external_metrics)
		print_usage(state, "--external-metrics-cert-file needs --external-metrics");
}

// clang-format off
#define FLAGS_OF struct serve_options
const struct flag_set serve_flags = {.check = check, .flags = (const struct flag[]){
	FLAG_HEADING(6, "Serving:"),
	FLAG_TEXT(6, 0, "tls-cert-file", "FILE", tls_cert_file, "serve the endpoints over TLS with this certificate and its chain; reloaded on change"),
	FLAG_TEXT(6, 0, "tls-key-file", "FILE", tls_key_file, "its private key"),
	FLAG_TEXT(6, 0, "tls-client-ca-file", "FILE", tls_client_ca_file, "require a client certificate of this CA"),
	FLAG_CALL(6, 0, "tls-min-version", "1.2|1.3", tls_min_minor, set_min_version, "lowest version of TLS (default 1.2)"),
	FLAG_TEXT(6, 0, "endpoint-token-file", "FILE", token_file, "require this bearer token on all endpoints except /livez, /readyz and /healthz; reloaded on change"),
	FLAG_TEXT(6, 0, "allowed-hosts", "NAME,..", allowed_hosts, "host names, besides IP addresses, localhost and this machine's name, under which the endpoints may be asked for; *.example.com stands for every name below example.com"),
	FLAG_I64(6, 0, "metrics-policies", "N", metrics_policies, 0, POLICY_SET_MAX, "policies with series of their own on /metrics, the first by namespace and name (default 2000); the others are counted by gpuscale_policies_without_series"),
	FLAG_CALL(6 | FLAG_OPTIONAL, 0, "external-metrics", "ADDR", external_metrics, set_external_metrics, "serve external.metrics.k8s.io/v1beta1 over TLS, for HorizontalPodAutoscalers (default address " EXTERNAL_METRICS_LISTEN ")"),
	FLAG_TEXT(6, 0, "external-metrics-cert-file", "FILE", external_metrics_cert_file, "its certificate (default: --tls-cert-file, else one made in memory)"),
	FLAG_TEXT(6, 0, "external-metrics-key-file", "FILE", external_metrics_key_file, "its private key"),
	FLAG_END}};
// clang-format on
// ---- the bearer token ----

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
	buf_wipe(&file);
	return rc;
}

struct endpoint_token *endpoint_token_new(const char *path, struct log *log, struct err *e)
{
	struct endpoint_token *t = must_alloc(calloc(1, sizeof *t));
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

// ---- certificates ----

#define FILES 3

struct tls_follower {
	struct http_server *server;
	struct http_server_options tls;
	const char *name;
	struct log *log;
	struct event tick;
	struct file_stamp stamps[FILES]; // of the files just before they were read
	bool known;                      // the stamps are those of the last attempt
	bool failing;                    // the last attempt failed; retry, because the other file may change later
	char last_error[ERR_MSG_BYTES];
};

static void take_stamps(const struct tls_follower *f, struct file_stamp out[FILES])
{
	const char *const paths[FILES] = {f->tls.tls_cert_file, f->tls.tls_key_file, f->tls.tls_client_ca_file};
	for (int i = 0; i < FILES; i++)
		out[i] = file_stamp_of(paths[i]);
}

static void failed(struct tls_follower *f, const struct err *e)
{
	bool news = !f->failing || strcmp(f->last_error, e->msg) != 0;
	f->failing = true;
	memcpy(f->last_error, e->msg, sizeof e->msg);
	if (!news)
		return;
	LOG(f->log, LOG_ERROR, "Cannot use changed certificate; keeping the previous one", LOG_S("server", f->name),
	    LOG_S("err", e->msg));
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct tls_follower *f = arg;
	struct file_stamp now[FILES];
	struct err e;
	take_stamps(f, now);
	if (f->known && !f->failing && memcmp(now, f->stamps, sizeof now) == 0)
		return;
	memcpy(f->stamps, now, sizeof now);
	if (http_server_set_tls(f->server, &f->tls, &e) < 0) {
		failed(f, &e);
	} else {
		if (f->known)
			LOG(f->log, LOG_INFO, "Reloaded certificate", LOG_S("server", f->name),
			    LOG_S("file", f->tls.tls_cert_file));
		f->failing = false;
	}
	f->known = true;
}

struct tls_follower *tls_follower_new(struct event_base *loop, struct http_server *server,
                                      const struct http_server_options *tls, const char *name, struct log *log)
{
	struct tls_follower *f = must_alloc(calloc(1, sizeof *f));
	f->server = server;
	f->tls = *tls;
	f->name = name;
	f->log = log;
	event_assign(&f->tick, loop, -1, EV_PERSIST, on_tick, f);
	// The first check reloads the files, because they may have changed since the server read them.
	if (timer_start(&f->tick, TLS_FOLLOWER_MS) < 0)
		abort(); // base/alloc.h
	return f;
}

void tls_follower_free(struct tls_follower *f)
{
	if (!f)
		return;
	event_del(&f->tick);
	free(f);
}
