// SPDX-License-Identifier: Apache-2.0
// The server of external.metrics.k8s.io/v1beta1: TLS always, every request but a probe authenticated and authorized as
// the API server would (controller/external/delegated_auth.h), values from the policies in force.
#ifndef GPUSCALE_CONTROLLER_EXTERNAL_EXTERNAL_METRICS_SERVER_H
#define GPUSCALE_CONTROLLER_EXTERNAL_EXTERNAL_METRICS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct clock;
struct metrics_path;
struct decision;
struct err;
struct event_base;
struct external_metrics_server;
struct k8s_client;
struct log;
struct metrics;
struct policy;
struct scale_target;

// ---- the values (external_values.c) ----
// The values of the external metrics API: the signals of the policies in force, and their desired replicas. A name is
//   SIGNAL          the signal of that name of every policy of the namespace, distinguished by labels
//   POLICY:SIGNAL   the signal of one policy
//   @desired-replicas, POLICY:@desired-replicas   the desired replicas
// A value is returned only if its query succeeded and its sample is younger than staleAfter. If one of the requested
// values is not usable, none is returned: a sum that silently lacks a part would scale the wrong way.

#define EXTERNAL_VALUES_MAX      1000 // of one reply
#define EXTERNAL_NAMES_MAX       1000 // listed by discovery; there may be more
#define EXTERNAL_DESIRED         "@desired-replicas"
#define EXTERNAL_DECISION_AGE_MS 15000 // a decision is usable for two intervals of its policy plus this

// One policy in force, as the controller has it.
struct external_source {
	const struct policy *policy;
	const struct scale_target *target;
	const struct decision *decision; // the last one; NULL: none yet
	const char *error;               // why the last tick made none; "": it did
};
// Returns the i-th policy, from 0 on; false past the last.
typedef bool external_source_fn(void *arg, size_t i, struct external_source *ret_source);

// Appends the ExternalMetricValueList of `metric` in the namespace, with the values whose labels (policy, signal,
// target_kind, target_name) match the selector (NULL: all). wall_ms: now. Returns -1 and *e: ERR_NOT_FOUND no policy of
// the namespace has the metric, ERR_INPUT invalid selector, ERR_LIMIT too many values, ERR_SERVER a value is not
// usable.
int external_values_write(struct buf *out, external_source_fn *next, void *arg, const char *namespace_name,
                          const char *metric, const char *selector, int64_t wall_ms, struct err *e);

// Appends the MetricValueList (custom.metrics.k8s.io) of a signal, or of EXTERNAL_DESIRED, of the policy whose target
// is the object of `path`, or of the policy itself (gpuautoscalers.gpuscale.dev). Returns as external_values_write;
// ERR_INPUT also when several policies match.
int custom_value_write(struct buf *out, external_source_fn *next, void *arg, const struct metrics_path *path,
                       const char *selector, int64_t wall_ms, struct err *e);

// The names that discovery lists: each signal's once, and EXTERNAL_DESIRED. Names with a policy in front are served,
// but not listed: discovery is open to every user of the cluster. Returns how many; the texts belong to the policies.
size_t external_values_names(external_source_fn *next, void *arg, const char *ret_names[EXTERNAL_NAMES_MAX]);

// ---- the server ----

struct external_metrics_server_options {
	struct event_base *loop; // not owned, as all below
	struct k8s_client *client;
	const struct clock *clock;
	struct log *log;
	struct metrics *metrics; // counts the requests; may be NULL
	const char *listen;
	const char *cert_file, *key_file; // NULL: a certificate is generated at start
	int tls_min_minor;                // as in http_server_options
	external_source_fn *next;         // the policies in force
	bool (*has_synced)(void *arg);    // whether all policies are known; before, no metric is reported as unknown
	void *arg;                        // of both
};

// Listens at once. Returns NULL and *e (ERR_IO, ERR_TLS, ERR_USAGE) on failure.
struct external_metrics_server *external_metrics_server_new(const struct external_metrics_server_options *options,
                                                            struct err *e);
// Stops its requests to the API server. Call before the client is freed.
void external_metrics_server_stop(struct external_metrics_server *m);
// Call after the client has ended its requests. NULL is fine.
void external_metrics_server_free(struct external_metrics_server *m);
uint16_t external_metrics_server_port(const struct external_metrics_server *m);

#endif
