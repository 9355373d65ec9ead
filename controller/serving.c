// SPDX-License-Identifier: Apache-2.0
#include "controller/serving.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/http_server.h"
#include "base/log.h"
#include "controller/connections.h"
#include "controller/controller.h"
#include "controller/endpoint_token.h"
#include "controller/endpoints.h"
#include "controller/external_metrics.h"
#include "controller/reconcile.h"
#include "controller/serve_options.h"
#include "controller/tls_follower.h"

struct serving {
	struct serving_options options;
	struct endpoint_token *token;      // NULL: none is asked for
	struct http_server *server;        // of the endpoints; NULL: none
	struct tls_follower *follower;     // NULL: plain HTTP
	struct external_metrics *external; // NULL: not served
	struct controller_view view;       // of the walk over policies that is under way
	bool settled;                      // see is_settled()
};

static int serve_endpoints(struct serving *s, struct err *e)
{
	const struct serve_options *flags = s->options.flags;
	struct event_base *loop = s->options.connections->loop;
	struct http_server_options o = {
	        .loop = loop,
	        .listen = s->options.listen,
	        .tls_cert_file = flags->tls_cert_file,
	        .tls_key_file = flags->tls_key_file,
	        .tls_client_ca_file = flags->tls_client_ca_file,
	        .tls_min_minor = flags->tls_min_minor,
	};
	s->server = http_server_new(&o, e);
	if (!s->server || endpoints_add(s->server, s->options.controller, e) < 0)
		return -1;
	if (flags->token_file) {
		s->token = endpoint_token_new(flags->token_file, s->options.log, e);
		if (!s->token)
			return -1;
		http_server_set_admission(s->server, endpoint_token_admit, s->token);
	}
	if (flags->tls_cert_file) {
		s->follower = tls_follower_new(loop, s->server, &o, "endpoints", s->options.log, e);
		if (!s->follower)
			return -1;
	}
	LOG(s->options.log, LOG_INFO, "Serving", LOG_S("listen", s->options.listen),
	    LOG_I("port", http_server_port(s->server)), LOG_B("tls", flags->tls_cert_file != NULL),
	    LOG_B("token", flags->token_file != NULL));
	return 0;
}

// An external_source_fn.
static bool next_policy(void *arg, size_t i, struct external_source *ret_source)
{
	struct serving *s = arg;
	if (i == 0)
		controller_get_view(s->options.controller, &s->view);
	if (i >= s->view.n_reconcilers)
		return false;
	const struct reconciler *r = s->view.reconcilers[i];
	const char *const *details;
	*ret_source = (struct external_source){
	        .policy = reconciler_policy(r),
	        .decision = reconciler_decision(r, &details),
	        .error = reconciler_error(r),
	};
	return true;
}

// Once every policy that was there at the start had a tick. Stays so: a policy that comes later has no values yet,
// which is no reason to take the others out of service.
static bool is_settled(void *arg)
{
	struct serving *s = arg;
	const char *const *details;
	if (s->settled)
		return true;
	controller_get_view(s->options.controller, &s->view);
	if (s->view.from_cluster && !s->view.is_synced)
		return false;
	for (size_t i = 0; i < s->view.n_reconcilers; i++) {
		const struct reconciler *r = s->view.reconcilers[i];
		if (!reconciler_decision(r, &details) && !reconciler_error(r)[0])
			return false;
	}
	s->settled = true;
	return true;
}

static int serve_external(struct serving *s, struct err *e)
{
	const struct serve_options *flags = s->options.flags;
	struct connections *connections = s->options.connections;
	const struct external_metrics_options o = {
	        .loop = connections->loop,
	        .client = connections->k8s,
	        .clock = &connections->clock,
	        .log = s->options.log,
	        .metrics = s->options.metrics,
	        .listen = flags->external_metrics,
	        .cert_file =
	                flags->external_metrics_cert_file ? flags->external_metrics_cert_file : flags->tls_cert_file,
	        .key_file = flags->external_metrics_cert_file ? flags->external_metrics_key_file : flags->tls_key_file,
	        .tls_min_minor = flags->tls_min_minor,
	        .next = next_policy,
	        .is_settled = is_settled,
	        .arg = s,
	};
	if (!connections->k8s)
		return err_set(e, ERR_USAGE, "--external-metrics needs a cluster to ask who may read them");
	s->external = external_metrics_new(&o, e);
	return s->external ? 0 : -1;
}

struct serving *serving_new(const struct serving_options *options, struct err *e)
{
	static const struct serve_options plain = {.tls_min_minor = 2};
	struct serving *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	s->options = *options;
	if (!s->options.flags)
		s->options.flags = &plain;
	if ((options->listen && options->listen[0] && serve_endpoints(s, e) < 0) ||
	    (s->options.flags->external_metrics && serve_external(s, e) < 0)) {
		serving_disconnect(s);
		serving_free(s);
		return NULL;
	}
	return s;
}

void serving_disconnect(struct serving *s)
{
	if (s)
		external_metrics_stop(s->external);
}

void serving_free(struct serving *s)
{
	if (!s)
		return;
	external_metrics_free(s->external);
	tls_follower_free(s->follower);
	http_server_free(s->server);
	endpoint_token_free(s->token);
	free(s);
}
