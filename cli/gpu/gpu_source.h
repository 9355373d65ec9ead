// SPDX-License-Identifier: Apache-2.0
// Queries on metrics of GPUs that wait for their answer. Exporters with other names than dcgm-exporter up to 4.8 are
// read, too, when the server has no rules that record their metrics under its names (insight/gpu_names.h).
#ifndef GPUSCALE_CLI_GPU_GPU_SOURCE_H
#define GPUSCALE_CLI_GPU_GPU_SOURCE_H

struct connections;
struct err;
struct promql_question;
struct promql_series;
struct promql_source;

struct gpu_source {
	struct connections *c;
	struct promql_source *source;
	unsigned namings; // that queries are completed by
};

// Finds the only source of the connections, and asks it for the names that it has. Returns 0, or -1 and *e.
int gpu_source_open(struct gpu_source *ret, struct connections *c, struct err *e);

// Called for each series of an answer until it returns -1 with *e.
typedef int gpu_series_fn(void *arg, const struct promql_series *s, struct err *e);
// Runs the query, which is valid, to its end. Returns 0, or -1 and *e: the errors of promql_failover_ask(), of
// promql_result_check() and of `take`.
int gpu_source_ask(const struct gpu_source *s, const struct promql_question *question, gpu_series_fn *take, void *arg,
                   struct err *e);

#endif
