// SPDX-License-Identifier: Apache-2.0
// The exporter's pages: /metrics, /-/healthy (the process lives), /-/ready (a fresh sample exists), / (what there is),
// POST /-/release (closes the devices).
#ifndef GPUSCALE_EXPORTER_SERVER_H
#define GPUSCALE_EXPORTER_SERVER_H

#include <stdint.h>

struct buf;
struct clock;
struct err;
struct event_base;
struct exporter_server;
struct log;
struct pods;
struct sampler;
struct xid_store;

struct exporter_server_options {
	struct event_base *loop; // none of these is owned
	const char *listen;
	struct sampler *sampler;
	struct xid_store *xids;
	struct pods *pods; // NULL: not asked for
	const struct clock *clock;
	struct log *log;               // may be NULL
	const char *web_config;        // a file of exporter/web_config.h; NULL: plain HTTP for everybody
	struct buf *ret_errors;        // gets a line for every fault of it
	uint64_t counter_rows_skipped; // told in the self metrics
};

struct exporter_server *exporter_server_new(const struct exporter_server_options *options, struct err *e);
void exporter_server_free(struct exporter_server *s);
uint16_t exporter_server_port(const struct exporter_server *s);

#endif
