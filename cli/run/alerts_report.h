// SPDX-License-Identifier: Apache-2.0
// Renders replayed alerts as tables and as JSON.
#ifndef GPUSCALE_CLI_RUN_ALERTS_REPORT_H
#define GPUSCALE_CLI_RUN_ALERTS_REPORT_H

struct alert_replay;
struct alert_rules;
struct buf;

struct alerts_report {
	const struct alert_replay *replay;
	const struct alert_rules *rules;
};

// One row per alert that was active or is marked.
void alerts_report_table(const struct alerts_report *r, struct buf *out);
// The same, and one row per interval and per missed breach.
void alerts_report_wide(const struct alerts_report *r, struct buf *out);
void alerts_report_json(const struct alerts_report *r, struct buf *out);

#endif
