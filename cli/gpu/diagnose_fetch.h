// SPDX-License-Identifier: Apache-2.0
// Asks a Prometheus for the GPUs, their holders and the measures of the table of verdicts.
#ifndef GPUSCALE_CLI_GPU_DIAGNOSE_FETCH_H
#define GPUSCALE_CLI_GPU_DIAGNOSE_FETCH_H

#include <stdint.h>

struct err;
struct prometheus_session;
struct workload_set;

// Fills and decides *ret_set from the source of `c` that is called default, or is the only one, over a window of
// `window_s` seconds; waits for the answers. At most 12 queries for 1,000 GPUs: several measures share one. Returns -1
// and *e when an answer about the GPUs fails or is incomplete, ERR_NOT_FOUND when no GPU reports; a failure about pods
// and nodes is reported on stderr, and their measures are missing. The caller calls workload_set_done() in either case.
int diagnose_fetch(struct prometheus_session *session, int64_t window_s, struct workload_set *ret_set, struct err *e);

#endif
