// SPDX-License-Identifier: Apache-2.0
// The connection of a command to its Prometheus: queries are sent one after the other, each waits for its answer, and
// the progress is shown meanwhile.
#ifndef GPUSCALE_CLI_TERM_PROMETHEUS_SESSION_H
#define GPUSCALE_CLI_TERM_PROMETHEUS_SESSION_H

#include <stdint.h>

#include "cli/term/progress.h"
#include "runtime/connections.h"

struct promql_question;
struct promql_series;

struct prometheus_session {
	struct connections connections;
	struct progress progress; // the command clears it before it prints
};

struct prometheus_range {
	int64_t start_ms, end_ms, step_ms;
};

// Opens the sources of `options`. Returns 0, or -1 and *e; on failure nothing stays open.
int prometheus_session_open(struct prometheus_session *s, const struct prometheus_options *options, struct err *e);
void prometheus_session_close(struct prometheus_session *s);

// Called for each series of an answer until it returns -1 with *e.
typedef int prometheus_series_fn(void *arg, const struct promql_series *s, struct err *e);
// Sends the query, which is valid, to the source that is called default, or is the only one, and waits for the answer.
// range: the times of a range query; NULL: an instant one. Returns 0, or -1 and *e: the errors of
// promql_failover_ask(), of promql_result_check() and of `take`.
int prometheus_session_ask(struct prometheus_session *s, const struct promql_question *question,
                           const struct prometheus_range *range, prometheus_series_fn *take, void *arg, struct err *e);

#endif
