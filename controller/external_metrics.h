// SPDX-License-Identifier: Apache-2.0
// The server of external.metrics.k8s.io/v1beta1: TLS always, every request but a probe authenticated and authorized as
// the API server would (controller/delegated_auth.h), values from the policies in force (controller/external_values.h).
#ifndef GPUSCALE_CONTROLLER_EXTERNAL_METRICS_H
#define GPUSCALE_CONTROLLER_EXTERNAL_METRICS_H

#include <stdint.h>

#include "controller/external_values.h"

struct clock;
struct err;
struct event_base;
struct external_metrics;
struct k8s_client;
struct log;
struct metrics;

struct external_metrics_options {
	struct event_base *loop; // not owned, as all below
	struct k8s_client *client;
	const struct clock *clock;
	struct log *log;
	struct metrics *metrics; // counts the requests; may be NULL
	const char *listen;
	const char *cert_file, *key_file; // NULL: a certificate is made in memory
	int tls_min_minor;                // as in http_server_options
	external_source_fn *next;         // the policies in force
	bool (*is_settled)(void *arg);    // whether all of them are known: before, none is said not to be there
	void *arg;                        // of both
};

// Listens at once. NULL and *e (ERR_IO, ERR_TLS, ERR_USAGE).
struct external_metrics *external_metrics_new(const struct external_metrics_options *options, struct err *e);
// Ends what it asks of the API server by itself: before the client is freed.
void external_metrics_stop(struct external_metrics *m);
// After the client has ended its requests. NULL is fine.
void external_metrics_free(struct external_metrics *m);
uint16_t external_metrics_port(const struct external_metrics *m);

#endif
