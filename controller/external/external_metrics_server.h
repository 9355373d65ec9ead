// SPDX-License-Identifier: Apache-2.0
// The server of external.metrics.k8s.io/v1beta1: TLS always, every request but a probe authenticated and authorized as
// the API server would (controller/external/delegated_auth.h), values from the policies in force
// (controller/external/external_values.h).
#ifndef GPUSCALE_CONTROLLER_EXTERNAL_EXTERNAL_METRICS_SERVER_H
#define GPUSCALE_CONTROLLER_EXTERNAL_EXTERNAL_METRICS_SERVER_H

#include <stdint.h>

#include "controller/external/external_values.h"

struct clock;
struct err;
struct event_base;
struct external_metrics_server;
struct k8s_client;
struct log;
struct metrics;

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
