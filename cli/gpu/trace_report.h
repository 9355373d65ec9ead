// SPDX-License-Identifier: Apache-2.0
// Renders the analysis of a profiler trace: as tables, as JSON, or as a timeline in SVG.
#ifndef GPUSCALE_CLI_GPU_TRACE_REPORT_H
#define GPUSCALE_CLI_GPU_TRACE_REPORT_H

#include <stddef.h>

struct buf;
struct gpu_trace;
struct trace_file_counts;

struct trace_report {
	const struct gpu_trace *trace;
	const struct trace_file_counts *counts;
	size_t n_kernels; // at most
};

void trace_report_table(const struct trace_report *r, struct buf *out);
void trace_report_json(const struct trace_report *r, struct buf *out);
void trace_report_svg(const struct trace_report *r, struct buf *out);
// Appends a line for everything that was left out of the report.
void trace_report_notes(const struct trace_report *r, struct buf *out);

#endif
