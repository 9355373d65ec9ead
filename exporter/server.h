// SPDX-License-Identifier: Apache-2.0
// The exporter's pages: /metrics, /-/healthy (the process lives), /-/ready (a fresh sample exists), / (what there is).
#ifndef GPUSCALE_EXPORTER_SERVER_H
#define GPUSCALE_EXPORTER_SERVER_H

#include <stdint.h>

struct err;
struct event_base;
struct exporter_server;
struct pods;
struct sampler;
struct xid_store;

struct exporter_server_options {
	struct event_base *loop; // none of these is owned
	const char *listen;
	const char *backend_name;
	struct sampler *sampler;
	struct xid_store *xids;
	struct pods *pods;             // NULL: not asked for
	uint64_t counter_rows_skipped; // told in the self metrics
};

struct exporter_server *exporter_server_new(const struct exporter_server_options *options, struct err *e);
void exporter_server_free(struct exporter_server *s);
uint16_t exporter_server_port(const struct exporter_server *s);

#endif
