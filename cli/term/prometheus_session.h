// SPDX-License-Identifier: Apache-2.0
// The connection of a command to its Prometheus: queries are sent one after the other, each waits for its answer, and
// the progress is shown meanwhile. Exporters of GPUs with other names than dcgm-exporter up to 4.8 are read, too, when
// the server has no rules that record their metrics under its names (insight/gpu_names.h).
#ifndef GPUSCALE_CLI_TERM_PROMETHEUS_SESSION_H
#define GPUSCALE_CLI_TERM_PROMETHEUS_SESSION_H

#include "cli/term/progress.h"
#include "runtime/connections.h"

struct promql_question;
struct promql_series;

struct prometheus_session {
	struct connections connections;
	struct progress progress; // the command clears it before it prints
	unsigned namings;         // of metrics of GPUs, which queries are completed by
};

// Opens the sources of `options`. Returns 0, or -1 and *e; on failure nothing stays open.
int prometheus_session_open(struct prometheus_session *s, const struct prometheus_options *options, struct err *e);
void prometheus_session_close(struct prometheus_session *s);

// Called for each series of an answer until it returns -1 with *e.
typedef int prometheus_series_fn(void *arg, const struct promql_series *s, struct err *e);
// Sends the query, which is valid, to the source that is called default, or is the only one, and waits for the answer.
// Returns 0, or -1 and *e: the errors of promql_failover_ask(), of promql_result_check() and of `take`.
int prometheus_session_ask(struct prometheus_session *s, const struct promql_question *question,
                           prometheus_series_fn *take, void *arg, struct err *e);
// Asks which names the metrics of GPUs have on the server. Returns 0, or -1 and *e.
int prometheus_session_find_gpus(struct prometheus_session *s, struct err *e);
// Like prometheus_session_ask(), for a query on metrics of GPUs, which it completes by the names that were found.
int prometheus_session_ask_gpus(struct prometheus_session *s, const struct promql_question *question,
                                prometheus_series_fn *take, void *arg, struct err *e);

#endif
