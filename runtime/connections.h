// SPDX-License-Identifier: Apache-2.0
// The event loop and the clients of the outside world that run, plan and later commands share.
#ifndef GPUSCALE_RUNTIME_CONNECTIONS_H
#define GPUSCALE_RUNTIME_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/k8s_config.h"

struct fit_store;
struct ha_options;
struct kube_options;
struct log;
struct metrics;
struct promql_sources;
struct prometheus_options;
struct query_hub;
struct shards;
struct shards_callbacks;
struct target_store;

struct connections {
	struct event_base *loop;
	struct clock clock;
	struct http_client *kube_http; // apart from those of the sources: a slow one never delays a write
	struct promql_sources *promql;
	struct query_hub *queries;
	struct k8s_client *k8s;       // NULL without a cluster
	struct target_store *targets; // of connections_watch()
	struct fit_store *fits;       // likewise
	bool elects;             // leader election is on, and no request takes longer than a lease allows for a write
	struct shards *shards;   // permits each write to the API server; NULL: every write is permitted
	k8s_observe_fn *observe; // counts the requests of clients of the API server; may be NULL
	void *observe_arg;
	struct k8s_config k8s_config;
	struct arena arena;
};

// Opens the sources of `prometheus`, and the API server of `kube` (each NULL: none). metrics (may be NULL) counts the
// requests. election: its flags; NULL: none. Without a flag, leader election is on when the configuration of the API
// server is that of the cluster this process runs in. On failure closes everything again.
int connections_open(struct connections *c, const struct prometheus_options *prometheus,
                     const struct kube_options *kube, const struct ha_options *election, struct metrics *metrics,
                     struct err *e);
// Shares the policies with other processes from now on: creates c->shards. Generates the identity of this process in
// `election` if none is given.
int connections_elect(struct connections *c, struct ha_options *election, const struct shards_callbacks *callbacks,
                      void *arg, struct log *log, struct err *e);
// Returns the namespace that this process runs in; NULL outside a cluster.
const char *connections_own_namespace(const struct connections *c);
// Watches the scale targets from now on, unless on_target_error (as in target_store_options) is NULL, and lets policies
// with spec.capacity know what fits into the cluster, which is read when the first of them needs it; on_capacity_error
// as in fit_store_options. Does nothing without a cluster.
int connections_watch(struct connections *c,
                      void (*on_target_error)(void *arg, const char *what, const struct err *error),
                      void (*on_capacity_error)(void *arg, const struct err *error), void *arg, struct err *e);
// Runs the loop until *done, which the callback of a request sets, together with *error. Returns 0, or -1 and *e:
// *error, or that the loop stopped before. Every request has a timeout, so it ends.
int connections_wait(struct connections *c, const bool *done, const struct err *error, struct err *e);
// Ends every request in flight with ERR_CANCELED; callbacks run.
void connections_cancel(struct connections *c);
// Frees everything; cancels first if need be.
void connections_close(struct connections *c);

#endif
