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

struct err;
struct event_base;
struct fit_store;
struct ha_options;
struct http_client;
struct kube_options;
struct metrics;
struct promql_sources;
struct prometheus_options;
struct query_hub;
struct target_store;

// Permits the writes to the API server. Zero: every write is permitted.
struct write_guard {
	int (*may_write)(void *arg, struct err *e); // called before each write; -1 and *e: the write must not be sent
	uint64_t (*term)(void *arg);                // a write that was queued under another term is not sent
	void *arg;
};

struct connections {
	struct event_base *loop;
	struct clock clock;
	struct http_client *kube_http; // apart from those of the sources: a slow one never delays a write
	struct promql_sources *promql;
	struct query_hub *queries;
	struct k8s_client *k8s;       // NULL without a cluster
	struct target_store *targets; // NULL unless connections_watch_targets
	struct fit_store *fits;       // NULL unless connections_read_capacity
	bool elects; // leader election is on, and no request takes longer than a lease allows for a write
	struct write_guard write_guard; // called before each write; set it at any time
	k8s_observe_fn *observe;        // counts the requests of clients of the API server; may be NULL
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
// Returns the namespace that this process runs in; NULL outside a cluster.
const char *connections_own_namespace(const struct connections *c);
// Watches the scale targets from now on; on_error as in target_store_options. Does nothing without a cluster.
int connections_watch_targets(struct connections *c,
                              void (*on_error)(void *arg, const char *what, const struct err *error), void *arg,
                              struct err *e);
// Lets policies with spec.capacity know what fits into the cluster, which is read when the first of them needs it;
// on_error as in fit_store_options. Call after connections_watch_targets(). Does nothing without a cluster.
int connections_read_capacity(struct connections *c, void (*on_error)(void *arg, const struct err *error), void *arg,
                              struct err *e);
// Runs the loop until *done, which the callback of a request sets, together with *error. Returns 0, or -1 and *e:
// *error, or that the loop stopped before. Every request has a timeout, so it ends.
int connections_wait(struct connections *c, const bool *done, const struct err *error, struct err *e);
// Ends every request in flight with ERR_CANCELED; callbacks run.
void connections_cancel(struct connections *c);
// Frees everything; cancels first if need be.
void connections_close(struct connections *c);

#endif
