// SPDX-License-Identifier: Apache-2.0
// Asks a Prometheus which GPUs are idle, who holds them, and since when.
#ifndef GPUSCALE_CLI_GPU_IDLE_FETCH_H
#define GPUSCALE_CLI_GPU_IDLE_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct err;
struct prometheus_session;

#define IDLE_ROWS_MAX 5000 // PROMQL_SERIES_MAX

// Idle GPUs of one model that one pod holds.
struct idle_row {
	const char *model, *namespace_name, *pod; // namespace "": no pod holds them
	double gpus;                              // parts of one for MIG instances and shared GPUs
	double last_busy_s, first_seen_s;         // since the epoch; 0: not within the lookback
};

struct idle_rows {
	struct idle_row rows[IDLE_ROWS_MAX];
	size_t n;
	struct arena names;
};

// Fills *ret from the default source of `c`; waits for the answers. for_s, lookback_s and matchers as in
// gpu_idle_query().
// Returns 0, or -1 and *e when a question fails or its answer is incomplete. The caller calls idle_rows_done() in both
// cases.
int idle_fetch(struct prometheus_session *session, int64_t now_s, int64_t for_s, int64_t lookback_s,
               const char *matchers, struct idle_rows *ret, struct err *e);
void idle_rows_done(struct idle_rows *rows);

#endif
