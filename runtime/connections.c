// SPDX-License-Identifier: Apache-2.0
#include "runtime/connections.h"

#include <event2/event.h>

#include "base/base.h"
#include "base/http/http_client.h"
#include "base/print.h"
#include "k8s/cache/target_store.h"
#include "k8s/capacity/fit_store.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/k8s_config.h"
#include "promql/promql_source.h"
#include "runtime/metrics/metrics.h"
#include "runtime/options/controller_options.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards.h"

#define CONNECTIONS_ARENA_MAX  (8 * 1024 * 1024)
#define CONNECTIONS_REPORT_MAX (1024 * 1024)
#define KUBE_IN_FLIGHT         16

static void count_request(void *arg, const struct k8s_attempt *attempt)
{
	metrics_api_request(arg, attempt->verb, attempt->resource, attempt->status);
}

static int may_write(void *arg, struct err *e)
{
	const struct connections *c = arg;
	return c->shards ? shards_guard(c->shards, e) : 0;
}

static uint64_t write_term(void *arg)
{
	const struct connections *c = arg;
	return c->shards ? shards_term(c->shards) : 0;
}

const char *connections_own_namespace(const struct connections *c)
{
	bool is_in_cluster = c->k8s_config.source && strcmp(c->k8s_config.source, K8S_CONFIG_IN_CLUSTER) == 0;
	return is_in_cluster ? c->k8s_config.namespace_name : NULL;
}

static int open_kube(struct connections *c, const struct kube_options *kube, const struct ha_options *election,
                     struct err *e)
{
	if (k8s_config_load(&c->arena, &kube->config, &c->k8s_config, e) < 0)
		return -1;
	c->elects = election && ha_options_is_on(election, connections_own_namespace(c) != NULL);
	struct http_client_options http = {.loop = c->loop, .max_in_flight = KUBE_IN_FLIGHT};
	c->kube_http = http_client_new(&http, e);
	if (!c->kube_http)
		return -1;
	struct k8s_client_options options = {.loop = c->loop,
	                                     .http = c->kube_http,
	                                     .clock = &c->clock,
	                                     .config = &c->k8s_config,
	                                     .timeout_ms = c->elects ? lease_write_timeout_ms(&election->timing) : 0,
	                                     .observe = c->observe,
	                                     .observe_arg = c->observe_arg,
	                                     .may_write = may_write,
	                                     .write_term = write_term,
	                                     .may_write_arg = c};
	c->k8s = k8s_client_new(&options, e);
	return c->k8s ? 0 : -1;
}

static int open_sources(struct connections *c, const struct prometheus_options *prometheus, struct err *e)
{
	struct promql_source_options *list;
	size_t n;
	struct buf report;
	buf_init(&report, CONNECTIONS_REPORT_MAX);
	int rc = prometheus_options_list(prometheus, &c->arena, &list, &n, &report, e);
	print_notes(&report);
	buf_done(&report);
	if (rc < 0)
		return -1;
	c->promql = promql_sources_new(c->loop, &c->clock, list, n, e);
	c->queries = c->promql ? query_hub_new(c->promql) : NULL;
	return c->queries ? 0 : -1;
}

int connections_open(struct connections *c, const struct prometheus_options *prometheus,
                     const struct kube_options *kube, const struct ha_options *election, struct metrics *metrics,
                     struct err *e)
{
	memset(c, 0, sizeof *c);
	c->observe = metrics ? count_request : NULL;
	c->observe_arg = metrics;
	arena_init(&c->arena, CONNECTIONS_ARENA_MAX);
	clock_init_real(&c->clock);
	c->loop = event_base_new();
	int rc = c->loop ? 0 : err_set(e, ERR_INTERNAL, "cannot create the event loop");
	if (rc < 0 || (prometheus && open_sources(c, prometheus, e) < 0) ||
	    (kube && open_kube(c, kube, election, e) < 0)) {
		connections_close(c);
		return -1;
	}
	return 0;
}

int connections_elect(struct connections *c, struct ha_options *election, const struct shards_callbacks *callbacks,
                      void *arg, struct log *log, struct err *e)
{
	struct shards_options options = {.loop = c->loop,
	                                 .clock = &c->clock,
	                                 .log = log,
	                                 .observe = c->observe,
	                                 .observe_arg = c->observe_arg,
	                                 .callbacks = *callbacks,
	                                 .arg = arg};
	ha_options_apply(election, &c->k8s_config, &options);
	c->shards = shards_new(&options, e);
	return c->shards ? 0 : -1;
}

int connections_watch(struct connections *c,
                      void (*on_target_error)(void *arg, const char *what, const struct err *error),
                      void (*on_capacity_error)(void *arg, const struct err *error), void *arg, struct err *e)
{
	const struct target_store_options targets = {.client = c->k8s, .on_error = on_target_error, .arg = arg};
	struct fit_store_options fits = {.client = c->k8s, .on_error = on_capacity_error, .arg = arg};
	if (!c->k8s)
		return 0;
	if (on_target_error && !(c->targets = target_store_new(&targets, e)))
		return -1;
	fits.targets = c->targets;
	c->fits = fit_store_new(&fits, e);
	return c->fits ? 0 : -1;
}

void connections_cancel(struct connections *c)
{
	if (c->fits)
		fit_store_stop(c->fits);
	if (c->targets)
		target_store_stop(c->targets);
	// This ends the requests of the client and runs their callbacks, so the users of the client still exist.
	k8s_client_free(c->k8s);
	c->k8s = NULL;
	promql_sources_cancel(c->promql);
	if (c->queries)
		query_hub_flush(c->queries);
	http_client_free(c->kube_http);
	c->kube_http = NULL;
}

int connections_wait(struct connections *c, const bool *done, const struct err *error, struct err *e)
{
	while (!*done)
		if (event_base_loop(c->loop, EVLOOP_ONCE) != 0 && !*done)
			return err_set(e, ERR_INTERNAL, "the event loop exited before the reply");
	if (error->kind == ERR_NONE)
		return 0;
	*e = *error;
	return -1;
}

void connections_close(struct connections *c)
{
	connections_cancel(c);
	fit_store_free(c->fits);
	target_store_free(c->targets);
	query_hub_free(c->queries);
	promql_sources_free(c->promql);
	shards_free(c->shards);
	if (c->loop)
		event_base_free(c->loop);
	k8s_config_wipe(&c->k8s_config);
	arena_done(&c->arena);
	memset(c, 0, sizeof *c);
}
