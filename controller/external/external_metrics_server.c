// SPDX-License-Identifier: Apache-2.0
#include "controller/external/external_metrics_server.h"

#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/http/http_server.h"
#include "base/http/tls_self_signed.h"
#include "base/process/log.h"
#include "k8s/server/access_review.h"
#include "k8s/server/metrics_api.h"
#include "runtime/metrics/metrics.h"
#include "runtime/options/serve_options.h"

#define REPLY_BYTES_MAX (16 * 1024 * 1024)
#define PEM_BYTES_MAX   (64 * 1024)
// Users in many groups, each in a header of its own.
#define HEADER_BYTES_MAX (64 * 1024)
#define BODY_BYTES_MAX   4096 // no endpoint reads bodies

struct external_metrics_server {
	struct external_metrics_server_options options;
	struct http_server *server;
	struct tls_follower *follower; // NULL: the certificate is generated
	struct delegated_auth *auth;
};

// A request that waits for its authorization.
struct visit {
	struct external_metrics_server *metrics;
	struct http_exchange *x;
	struct metrics_path path;
	struct metrics_path custom;
};

// ---- replies ----

static void reply_json(struct external_metrics_server *m, struct http_exchange *x, int status, struct buf *body)
{
	static const char too_large[] = "the reply is larger than its ceiling\n";
	if (m->options.metrics)
		metrics_external_request(m->options.metrics, body->failed ? 500 : status);
	if (body->failed)
		http_exchange_reply(x, 500, "text/plain; charset=utf-8", too_large, sizeof too_large - 1);
	else
		http_exchange_reply(x, status, "application/json", buf_str(body), body->len);
	buf_done(body);
}

static void reply_failure(struct external_metrics_server *m, struct http_exchange *x, int status, const char *message)
{
	struct buf b;
	buf_init(&b, REPLY_BYTES_MAX);
	k8s_status_write(&b, status, message);
	if (status == 401)
		http_exchange_set_header(x, "WWW-Authenticate", "Bearer realm=\"gpuscale\"");
	if (status == 429)
		http_exchange_set_header(x, "Retry-After", "1");
	reply_json(m, x, status, &b);
}

static int status_of(const struct err *e)
{
	switch (e->kind) {
	case ERR_NOT_FOUND:
		return 404;
	case ERR_INPUT:
	case ERR_LIMIT:
		return 400;
	case ERR_SERVER:
		return 503;
	default:
		return 500;
	}
}

static void reply_values(struct external_metrics_server *m, struct http_exchange *x, const struct metrics_path *path,
                         const struct metrics_path *custom)
{
	struct buf b;
	struct err e;
	const char *watch = http_exchange_query(x, "watch");
	// An invalid selector must not count as absent, which would select everything.
	if (http_exchange_query_is_broken(x)) {
		reply_failure(m, x, 400, "the query of the request cannot be read");
		return;
	}
	if (watch && strcmp(watch, "0") != 0 && strcmp(watch, "false") != 0) {
		reply_failure(m, x, 405, "metrics cannot be watched");
		return;
	}
	buf_init(&b, REPLY_BYTES_MAX);
	const struct external_metrics_server_options *o = &m->options;
	int64_t now_ms = clock_wall_ms(o->clock);
	int rc;
	if (custom->page == METRICS_VALUES)
		rc = custom_value_write(&b, o->next, o->arg, custom, http_exchange_query(x, "metricLabelSelector"),
		                        now_ms, &e);
	else
		rc = external_values_write(&b, o->next, o->arg, path->namespace_name, path->metric,
		                           http_exchange_query(x, "labelSelector"), now_ms, &e);
	if (rc < 0) {
		buf_done(&b);
		if (e.kind == ERR_NOT_FOUND && !m->options.has_synced(m->options.arg))
			err_set(&e, ERR_SERVER, "the policies are not all known yet");
		reply_failure(m, x, status_of(&e), e.msg);
		return;
	}
	reply_json(m, x, 200, &b);
}

// Lists the names of all metrics, for external metrics and for each kind of object that may have them.
static void write_resources(const struct external_metrics_server *m, bool is_custom, struct buf *b)
{
	static const char *const external[] = {""};
	static const char *const custom[] = {"deployments.apps/", "gpuautoscalers.gpuscale.dev/", "statefulsets.apps/"};
	const char *names[EXTERNAL_NAMES_MAX];
	size_t n = external_values_names(m->options.next, m->options.arg, names);
	if (is_custom)
		metrics_api_write_resources(b, &custom_metrics_api, custom, sizeof custom / sizeof custom[0], names, n);
	else
		metrics_api_write_resources(b, &external_metrics_api, external, 1, names, n);
}

static void reply_page(const struct visit *v)
{
	static const struct metrics_api *const apis[] = {&external_metrics_api, &custom_metrics_api};
	struct external_metrics_server *m = v->metrics;
	struct buf b;
	if (v->path.page == METRICS_VALUES || v->custom.page == METRICS_VALUES) {
		reply_values(m, v->x, &v->path, &v->custom);
		return;
	}
	buf_init(&b, REPLY_BYTES_MAX);
	if (v->path.page == METRICS_GROUPS)
		metrics_api_write_groups(&b, apis, sizeof apis / sizeof apis[0]);
	else if (v->path.page == METRICS_OF_GROUP)
		metrics_api_write_group(&b, &external_metrics_api);
	else if (v->custom.page == METRICS_OF_GROUP)
		metrics_api_write_group(&b, &custom_metrics_api);
	else if (v->path.page == METRICS_RESOURCES || v->custom.page == METRICS_RESOURCES)
		write_resources(m, v->custom.page == METRICS_RESOURCES, &b);
	else if (v->path.page == METRICS_OPENAPI)
		metrics_api_write_openapi(&b, GPUSCALE_VERSION);
	else {
		reply_failure(m, v->x, 404, "the server could not find the requested resource");
		return;
	}
	reply_json(m, v->x, 200, &b);
}

// ---- requests ----

static void on_checked(void *arg, int status, const char *message)
{
	struct visit *v = arg;
	struct visit visit = *v;
	free(v);
	if (status == 200)
		reply_page(&visit);
	else
		reply_failure(visit.metrics, visit.x, status, message);
}

static void handle(void *arg, struct http_exchange *x)
{
	struct external_metrics_server *m = arg;
	const char *method = http_exchange_method(x);
	bool is_head = strcmp(method, "HEAD") == 0;
	if (strcmp(method, "GET") != 0 && !is_head) {
		http_exchange_set_header(x, "Allow", "GET, HEAD");
		reply_failure(m, x, 405, "the server does not allow this method on the requested resource");
		return;
	}
	struct visit *v = must_alloc(calloc(1, sizeof *v));
	v->metrics = m;
	v->x = x;
	metrics_path_parse(&external_metrics_api, http_exchange_path(x), &v->path);
	metrics_path_parse(&custom_metrics_api, http_exchange_path(x), &v->custom);
	bool is_external = v->path.page == METRICS_VALUES, is_custom = v->custom.page == METRICS_VALUES;
	// The API server calls a GET of a resource without a name "list"; so does RBAC, and so do HPAs.
	struct access_attributes attributes = {
	        .verb = is_external             ? "list"
	                : is_head && !is_custom ? "head"
	                                        : "get",
	        .group = external_metrics_api.group,
	        .version = external_metrics_api.version,
	        .resource = is_external ? v->path.metric : NULL,
	        .namespace_name = v->path.namespace_name,
	        .path = http_exchange_path(x),
	};
	if (is_custom) {
		attributes.group = custom_metrics_api.group;
		attributes.version = custom_metrics_api.version;
		attributes.namespace_name = v->custom.namespace_name;
		attributes.resource = v->custom.resource;
		attributes.name = v->custom.object;
		attributes.subresource = v->custom.metric;
	}
	delegated_auth_check(m->auth, x, &attributes, on_checked, v);
}

static void handle_probe(void *arg, struct http_exchange *x)
{
	http_exchange_reply_text(x, 200, "ok\n");
}

static void handle_ready(void *arg, struct http_exchange *x)
{
	struct external_metrics_server *m = arg;
	if (!delegated_auth_is_ready(m->auth))
		http_exchange_reply_text(x, 503, "not ready: the authenticator of the cluster are not known\n");
	else if (!m->options.has_synced(m->options.arg))
		http_exchange_reply_text(x, 503, "not ready: the policies are not all known yet\n");
	else
		http_exchange_reply_text(x, 200, "ok\n");
}

// ---- life ----

// Serves with a generated certificate, for clients that do not verify it. Wipes the text of the key.
static struct http_server *serve_self_signed(struct http_server_options *o, const struct external_metrics_server *m,
                                             struct err *e)
{
	char host[256] = "localhost";
	struct buf cert, key;
	struct http_server *server = NULL;
	gethostname(host, sizeof host);
	host[sizeof host - 1] = '\0';
	const char *const names[] = {"localhost", host};
	buf_init(&cert, PEM_BYTES_MAX);
	buf_init(&key, PEM_BYTES_MAX);
	int64_t now_ms = clock_wall_ms(m->options.clock);
	// The host name may be invalid in a certificate.
	if (tls_self_signed(names, 2, now_ms, &cert, &key, e) == 0 ||
	    (buf_reset(&cert), buf_reset(&key), tls_self_signed(names, 1, now_ms, &cert, &key, e)) == 0) {
		o->tls_cert_pem = buf_str(&cert);
		o->tls_key_pem = buf_str(&key);
		server = http_server_new(o, e);
	}
	buf_wipe(&key);
	buf_done(&cert);
	if (server)
		LOG(m->options.log, LOG_WARNING,
		    "Serving external metrics with a generated certificate; the APIService needs insecureSkipTLSVerify",
		    LOG_S("flag", "--external-metrics-cert-file"));
	return server;
}

static int serve(struct external_metrics_server *m, struct err *e)
{
	const struct external_metrics_server_options *mo = &m->options;
	struct http_server_options o = {
	        .loop = mo->loop,
	        .listen = mo->listen,
	        .tls_cert_file = mo->cert_file,
	        .tls_key_file = mo->key_file,
	        .tls_min_minor = mo->tls_min_minor,
	        .max_header_bytes = HEADER_BYTES_MAX,
	        .max_body_bytes = BODY_BYTES_MAX,
	        .tls_client_auth = HTTP_CLIENT_AUTH_REQUEST, // verified at each request
	};
	m->server = mo->cert_file ? http_server_new(&o, e) : serve_self_signed(&o, m, e);
	if (!m->server)
		return -1;
	if (mo->cert_file)
		m->follower = tls_follower_new(mo->loop, m->server, &o, "external metrics", mo->log);
	static const char *const probes[] = {"/healthz", "/livez"};
	for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++)
		if (http_server_route(m->server, probes[i], handle_probe, NULL, e) < 0)
			return -1;
	if (http_server_route(m->server, "/readyz", handle_ready, m, e) < 0)
		return -1;
	return http_server_route(m->server, "/", handle, m, e);
}

struct external_metrics_server *external_metrics_server_new(const struct external_metrics_server_options *options,
                                                            struct err *e)
{
	struct external_metrics_server *m = must_alloc(calloc(1, sizeof *m));
	m->options = *options;
	if (!(m->auth = delegated_auth_new(options->client, options->log, e)) || serve(m, e) < 0) {
		err_wrap(e, "external metrics");
		external_metrics_server_stop(m);
		external_metrics_server_free(m);
		return NULL;
	}
	if (options->metrics) {
		options->metrics->serves_external = true;
		metrics_add_server(options->metrics, "external-metrics", m->server);
	}
	LOG(options->log, LOG_INFO, "Serving external metrics", LOG_S("listen", options->listen),
	    LOG_I("port", http_server_port(m->server)));
	return m;
}

void external_metrics_server_stop(struct external_metrics_server *m)
{
	if (m && m->auth)
		delegated_auth_stop(m->auth);
}

void external_metrics_server_free(struct external_metrics_server *m)
{
	if (!m)
		return;
	tls_follower_free(m->follower);
	http_server_free(m->server);
	delegated_auth_free(m->auth);
	free(m);
}

uint16_t external_metrics_server_port(const struct external_metrics_server *m)
{
	return http_server_port(m->server);
}
