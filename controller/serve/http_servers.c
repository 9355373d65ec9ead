// SPDX-License-Identifier: Apache-2.0
#include "controller/serve/http_servers.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/http/http_server.h"
#include "base/http/http_site.h"
#include "base/http/http_turns.h"
#include "base/process/log.h"
#include "controller/controller.h"
#include "controller/external/external_metrics_server.h"
#include "controller/serve/endpoints.h"
#include "controller/source/policy_watch.h"
#include "controller/tick/reconcile.h"
#include "runtime/connections.h"
#include "runtime/metrics/metrics.h"
#include "runtime/options/endpoint_token.h"
#include "runtime/options/serve_options.h"
#include "runtime/options/tls_follower.h"

struct http_servers {
	struct http_servers_options options;
	struct endpoint_token *token;             // NULL: none is demanded
	struct http_site *site;                   // host names of the endpoints
	struct http_turns *turns;                 // of its long pages
	struct http_server *server;               // of the endpoints; NULL: none
	struct tls_follower *follower;            // NULL: plain HTTP
	struct external_metrics_server *external; // NULL: not served
	bool has_synced;                          // see has_synced()
};

static int serve_endpoints(struct http_servers *s, struct err *e)
{
	const struct serve_options *flags = s->options.flags;
	struct controller *c = s->options.controller;
	struct event_base *loop = c->connections->loop;
	s->site = http_site_new(flags->allowed_hosts, e);
	if (!s->site)
		return err_wrap(e, "--allowed-hosts");
	http_site_add_own_name(s->site);
	struct http_server_options o = {
	        .loop = loop,
	        .listen = s->options.listen,
	        .max_body_bytes = ENDPOINT_BODY_BYTES_MAX,
	        .site = s->site,
	        .tls_cert_file = flags->tls_cert_file,
	        .tls_key_file = flags->tls_key_file,
	        .tls_client_ca_file = flags->tls_client_ca_file,
	        .tls_min_minor = flags->tls_min_minor,
	};
	s->server = http_server_new(&o, e);
	s->turns = s->server ? http_turns_new(loop, e) : NULL;
	if (!s->turns || endpoints_add(s->server, s->turns, c, e) < 0)
		return -1;
	metrics_add_server(c->policies.metrics, "endpoints", s->server);
	if (flags->token_file) {
		s->token = endpoint_token_new(flags->token_file, c->options.log, e);
		if (!s->token)
			return -1;
		http_server_set_admission(s->server, endpoint_token_admit, s->token);
	}
	if (flags->tls_cert_file) {
		s->follower = tls_follower_new(loop, s->server, &o, "endpoints", c->options.log, e);
		if (!s->follower)
			return -1;
	}
	LOG(c->options.log, LOG_INFO, "Serving", LOG_S("listen", s->options.listen),
	    LOG_I("port", http_server_port(s->server)), LOG_B("tls", flags->tls_cert_file != NULL),
	    LOG_B("token", flags->token_file != NULL));
	return 0;
}

// An external_source_fn.
static bool next_policy(void *arg, size_t i, struct external_source *ret_source)
{
	const struct http_servers *s = arg;
	struct managed_policies *all = &s->options.controller->policies;
	if (i >= all->n)
		return false;
	const struct managed_policy *m = managed_policies_sort(all)[i];
	*ret_source = (struct external_source){
	        .policy = m->reconciler->policy,
	        .target = m->reconciler->subject.binding->target,
	        .decision = m->reconciler->decision,
	        .error = managed_policy_error(m),
	};
	return true;
}

// Returns whether every policy that existed at the start had a tick. Policies that come later do not make it false
// again, so that the values of the others stay available.
static bool has_synced(void *arg)
{
	struct http_servers *s = arg;
	const struct controller *c = s->options.controller;
	if (s->has_synced)
		return true;
	if (c->options.policies_from_cluster &&
	    (!c->watch || !object_watch_get_state(policy_watch_objects(c->watch)).is_synced))
		return false;
	for (size_t i = 0; i < c->policies.n; i++) {
		const struct managed_policy *m = c->policies.list[i];
		if (!m->reconciler->decision && !managed_policy_error(m)[0])
			return false;
	}
	s->has_synced = true;
	return true;
}

static int serve_external(struct http_servers *s, struct err *e)
{
	const struct serve_options *flags = s->options.flags;
	const struct controller *c = s->options.controller;
	struct connections *connections = c->connections;
	const struct external_metrics_server_options o = {
	        .loop = connections->loop,
	        .client = connections->k8s,
	        .clock = &connections->clock,
	        .log = c->options.log,
	        .metrics = c->policies.metrics,
	        .listen = flags->external_metrics,
	        .cert_file =
	                flags->external_metrics_cert_file ? flags->external_metrics_cert_file : flags->tls_cert_file,
	        .key_file = flags->external_metrics_cert_file ? flags->external_metrics_key_file : flags->tls_key_file,
	        .tls_min_minor = flags->tls_min_minor,
	        .next = next_policy,
	        .has_synced = has_synced,
	        .arg = s,
	};
	if (!connections->k8s)
		return err_set(e, ERR_USAGE, "--external-metrics needs a cluster to ask who may read them");
	s->external = external_metrics_server_new(&o, e);
	return s->external ? 0 : -1;
}

struct http_servers *http_servers_new(const struct http_servers_options *options, struct err *e)
{
	struct http_servers *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	s->options = *options;
	if ((options->listen && options->listen[0] && serve_endpoints(s, e) < 0) ||
	    (s->options.flags->external_metrics && serve_external(s, e) < 0)) {
		http_servers_disconnect(s);
		http_servers_free(s);
		return NULL;
	}
	return s;
}

void http_servers_disconnect(struct http_servers *s)
{
	if (s)
		external_metrics_server_stop(s->external);
}

void http_servers_free(struct http_servers *s)
{
	if (!s)
		return;
	external_metrics_server_free(s->external);
	tls_follower_free(s->follower);
	http_turns_free(s->turns);
	http_server_free(s->server);
	http_site_free(s->site);
	endpoint_token_free(s->token);
	free(s);
}
