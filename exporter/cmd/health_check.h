// SPDX-License-Identifier: Apache-2.0
// `gpuscale-exporter check`: judges a page of metrics by the rules of exporter/health_policy.h, and reports the health
// of the GPUs of one page, with an exit code for node-problem-detector.
#ifndef GPUSCALE_EXPORTER_CMD_HEALTH_CHECK_H
#define GPUSCALE_EXPORTER_CMD_HEALTH_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "exporter/health_policy.h"

struct buf;
struct err;
struct exporter_options;
struct page_view;
struct page_view_gpu;

#define HEALTH_FINDINGS_MAX 512

struct health_finding {
	enum health_action action;
	const struct page_view_gpu *gpu;  // NULL: the node
	char reason[HEALTH_REASON_BYTES]; // CamelCase, for machines: "XID79", "RowRemapFailure"
	char text[160];
};

// Writes the findings about the page `v` at `wall_ms` to `ret_findings`, worst first; at most `max`. Returns their
// number.
size_t health_classify(const struct health_policy *p, const struct page_view *v, int64_t wall_ms,
                       struct health_finding *ret_findings, size_t max);

// Exit codes, as node-problem-detector reads them; 0 means healthy.
#define HEALTH_CHECK_PROBLEM 1
#define HEALTH_CHECK_UNKNOWN 2

// Appends the report on `v` to `out`, in the format that `o` requests, and returns the exit code. Without a page, `v`
// is NULL and `why` has the reason. `wall_ms` is the current time. Reads the XID policy file of `o`, if any; on
// errors in it, returns HEALTH_CHECK_UNKNOWN, fills `e` and appends a line for each error to `ret_errors`.
int health_check_run(const struct exporter_options *o, const struct page_view *v, const struct err *why,
                     int64_t wall_ms, struct buf *out, struct buf *ret_errors, struct err *e);

#endif
