// SPDX-License-Identifier: Apache-2.0
// Queries on metrics of GPUs that wait for their answer. Exporters with other names than dcgm-exporter up to 4.8 are
// read, too, when the server has no rules that record their metrics under its names (insight/gpu_names.h).
#ifndef GPUSCALE_CLI_GPU_GPU_SOURCE_H
#define GPUSCALE_CLI_GPU_GPU_SOURCE_H

#include "cli/term/prometheus_session.h"

struct err;
struct promql_question;

struct gpu_source {
	struct prometheus_session *session;
	unsigned namings; // that queries are completed by
};

// Asks the source of the session for the names that it has. Returns 0, or -1 and *e.
int gpu_source_open(struct gpu_source *ret, struct prometheus_session *session, struct err *e);

// Like prometheus_session_ask(), with the names of the source.
int gpu_source_ask(const struct gpu_source *s, const struct promql_question *question,
                   const struct prometheus_range *range, prometheus_series_fn *take, void *arg, struct err *e);

#endif
