// SPDX-License-Identifier: Apache-2.0
// The HTTP server of the exporter: /metrics, /-/healthy (the process runs), /-/ready (a current sample exists), /
// (links), POST /-/release (closes the devices for a while).
#ifndef GPUSCALE_EXPORTER_PAGE_EXPORTER_SERVER_H
#define GPUSCALE_EXPORTER_PAGE_EXPORTER_SERVER_H

#include <stdint.h>

#include "base/http/http_server.h"
#include "exporter/page/web.h"

struct buf;
struct clock;
struct err;
struct event_base;
struct exporter_server;
struct kubelet_pods;
struct log;
struct otlp_push;
struct pod_metadata;
struct sampler;
struct sampler_status;
struct xid_store;

struct exporter_server_options {
	struct event_base *loop; // not owned, like all pointers below
	const char *listen;
	struct sampler *sampler;
	struct xid_store *xids;
	struct kubelet_pods *pods;     // NULL: pods are not mapped
	struct pod_metadata *metadata; // NULL: no UIDs and labels of pods
	struct otlp_push *otlp;        // NULL: nothing is pushed
	const struct clock *clock;
	struct log *log;               // may be NULL
	const char *allowed_hosts;     // base/http/http_site.h; NULL: no additional names
	const char *web_config;        // a file as in exporter/page/web.h; NULL: plain HTTP without authentication
	struct buf *ret_errors;        // receives one line for each error in web_config
	uint64_t counter_rows_skipped; // reported in gpuscale_exporter_file_rows_skipped
};

// Binds the address and serves from the loop until exporter_server_free(). Copies `options`. Returns NULL and fills `e`
// on failure.
struct exporter_server *exporter_server_new(const struct exporter_server_options *options, struct err *e);
void exporter_server_free(struct exporter_server *s);
// The bound port.
uint16_t exporter_server_port(const struct exporter_server *s);

// ---- the metrics of the exporter about itself ----

struct self_metrics {
	uint64_t scrapes;
	uint64_t xid_overflows;
	uint64_t connections_closed[HTTP_CLOSE__COUNT];
	struct web_stats web;
	uint64_t counter_rows_skipped; // rows of the counters file
};

// Appends build_info, up and devices, which the output of --once contains too.
void self_metrics_render_state(struct buf *out, const struct sampler_status *status);
// Appends these and the other metrics: rounds, errors, durations, ages, label limits, the memory and CPU time of the
// process, and those of the map of pods, of the metadata of pods and of the pushes, unless the pointer is NULL.
void self_metrics_render(struct buf *out, const struct self_metrics *m, const struct sampler_status *status,
                         struct kubelet_pods *pods, struct pod_metadata *metadata, const struct otlp_push *otlp);

#endif
