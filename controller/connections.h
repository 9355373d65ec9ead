// SPDX-License-Identifier: Apache-2.0
// The event loop and the clients of the outside world that run, plan and later commands share.
#ifndef GPUSCALE_CONTROLLER_CONNECTIONS_H
#define GPUSCALE_CONTROLLER_CONNECTIONS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/clock.h"
#include "k8s/k8s_client.h"
#include "k8s/k8s_config.h"

struct err;
struct event_base;
struct ha_options;
struct http_client;
struct kube_options;
struct metrics;
struct promql_sources;
struct prometheus_options;
struct query_hub;
struct shards;
struct target_store;

struct connections {
	struct event_base *loop;
	struct clock clock;
	struct http_client *kube_http; // apart from those of the sources: a slow one never delays a write
	struct promql_sources *promql;
	struct query_hub *queries;
	struct k8s_client *k8s;       // NULL without a cluster
	struct target_store *targets; // NULL unless connections_watch_targets
	bool elects; // there is to be an election, and requests take no longer than a lease allows for a write
	struct shards *shards;   // asked before each write; not owned; NULL: no election
	k8s_observe_fn *observe; // of clients of the API server: counts; may be NULL
	void *observe_arg;
	struct k8s_config k8s_config;
	struct arena arena;
};

// Opens what is asked for: the sources always, the API server only with `kube` (NULL = none). metrics (may be NULL)
// counts the requests. On failure everything is closed again.
// election: flags about it; NULL: none. On unless they say so when policies are those of the cluster this runs in.
int connections_open_for(struct connections *c, const struct prometheus_options *prometheus,
                         const struct kube_options *kube, const struct ha_options *election, struct metrics *metrics,
                         struct err *e);
// The same, with no election.
int connections_open(struct connections *c, const struct prometheus_options *prometheus,
                     const struct kube_options *kube, struct metrics *metrics, struct err *e);
// Scale targets are known from watches from now on; on_error as in target_store_options. Does nothing without a
// cluster.
int connections_watch_targets(struct connections *c,
                              void (*on_error)(void *arg, const char *what, const struct err *error), void *arg,
                              struct err *e);
// Ends every request under way with ERR_CANCELED; callbacks run.
void connections_cancel(struct connections *c);
// Frees all; cancels first if need be.
void connections_close(struct connections *c);

#endif
