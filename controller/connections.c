// SPDX-License-Identifier: Apache-2.0
#include "controller/connections.h"

#include <event2/event.h>
#include <string.h>

#include "base/err.h"
#include "base/http_client.h"
#include "controller/metrics.h"
#include "controller/options.h"
#include "controller/query_hub.h"
#include "k8s/k8s_client.h"

#define CONNECTIONS_ARENA_MAX (8 * 1024 * 1024)
#define PROMETHEUS_IN_FLIGHT  16
#define KUBE_IN_FLIGHT        16

static void count_request(void *arg, const struct k8s_attempt *attempt)
{
	metrics_api_request(arg, attempt->verb, attempt->resource, attempt->status);
}

static int open_kube(struct connections *c, const struct kube_options *kube, struct metrics *metrics, struct err *e)
{
	if (k8s_config_load(&c->arena, &kube->config, &c->k8s_config, e) < 0)
		return -1;
	struct http_client_options http = {.loop = c->loop, .max_in_flight = KUBE_IN_FLIGHT};
	c->kube_http = http_client_new(&http, e);
	if (!c->kube_http)
		return -1;
	struct k8s_client_options options = {.loop = c->loop,
	                                     .http = c->kube_http,
	                                     .clock = &c->clock,
	                                     .config = &c->k8s_config,
	                                     .observe = metrics ? count_request : NULL,
	                                     .observe_arg = metrics};
	c->k8s = k8s_client_new(&options, e);
	return c->k8s ? 0 : -1;
}

int connections_open(struct connections *c, const struct prometheus_options *prometheus,
                     const struct kube_options *kube, struct metrics *metrics, struct err *e)
{
	memset(c, 0, sizeof *c);
	arena_init(&c->arena, CONNECTIONS_ARENA_MAX);
	clock_init_real(&c->clock);
	if (!prometheus->query.url || !prometheus->query.url[0])
		return err_set(e, ERR_USAGE,
		               "no Prometheus named: pass --prometheus URL or set GPUSCALE_PROMETHEUS_URL");
	c->loop = event_base_new();
	if (!c->loop)
		return err_set(e, ERR_INTERNAL, "cannot create the event loop");
	struct http_client_options http = {.loop = c->loop, .max_in_flight = PROMETHEUS_IN_FLIGHT};
	struct promql_options query = prometheus->query;
	c->prometheus_http = http_client_new(&http, e);
	query.http = c->prometheus_http;
	if (!c->prometheus_http || !(c->promql = promql_new(&query, e)) ||
	    !(c->queries = query_hub_new(c->promql, e)) || (kube && open_kube(c, kube, metrics, e) < 0)) {
		connections_close(c);
		return -1;
	}
	return 0;
}

void connections_cancel(struct connections *c)
{
	// The users of a client go before the client: their requests end, their callbacks run.
	k8s_client_free(c->k8s);
	c->k8s = NULL;
	promql_free(c->promql);
	c->promql = NULL;
	http_client_free(c->kube_http);
	c->kube_http = NULL;
	http_client_free(c->prometheus_http);
	c->prometheus_http = NULL;
}

void connections_close(struct connections *c)
{
	connections_cancel(c);
	query_hub_free(c->queries);
	if (c->loop)
		event_base_free(c->loop);
	arena_done(&c->arena);
	memset(c, 0, sizeof *c);
}
