// SPDX-License-Identifier: Apache-2.0
// Renders cost against lateness as a table, as JSON, as CSV and as a chart.
#ifndef GPUSCALE_CLI_REPLAY_FRONTIER_REPORT_H
#define GPUSCALE_CLI_REPLAY_FRONTIER_REPORT_H

struct buf;
struct frontier;
struct policy;

struct frontier_report {
	const struct frontier *frontier;
	const struct policy *policy;
	double price;            // of one GPU-hour; NaN: unknown
	double gpus_per_replica; // > 0
};

void frontier_report_table(const struct frontier_report *r, struct buf *out);
void frontier_report_json(const struct frontier_report *r, struct buf *out);
void frontier_report_csv(const struct frontier_report *r, struct buf *out);
void frontier_report_svg(const struct frontier_report *r, struct buf *out);

#endif
