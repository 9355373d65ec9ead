// SPDX-License-Identifier: Apache-2.0
// Renders verdicts as a table, a summary or JSON.
#ifndef GPUSCALE_CLI_GPU_DIAGNOSE_REPORT_H
#define GPUSCALE_CLI_GPU_DIAGNOSE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct price_book;
struct workload_set;

struct diagnose_report {
	const struct workload_set *set;
	const struct price_book *book;
	const char *namespace_name; // NULL: all
	const char *workload;       // a pod, a job, or the start of a pod's name up to a '-'; NULL: all
	int64_t window_s;
	int64_t now_ms;
	const bool *only; // by workload: print it; NULL: all
};

// True when the filters of the report select the workload.
bool diagnose_selects(const struct diagnose_report *r, size_t workload);
// Appends a row per workload, faults first, then by money lost.
void diagnose_print_table(const struct diagnose_report *r, bool with_head, struct buf *out);
// Appends how many GPUs are below 50, 70 and 85 % of activity, and the workloads and costs of each verdict.
void diagnose_print_summary(const struct diagnose_report *r, struct buf *out);
void diagnose_print_json(const struct diagnose_report *r, struct buf *out);

#endif
