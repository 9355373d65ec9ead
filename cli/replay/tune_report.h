// SPDX-License-Identifier: Apache-2.0
// Renders the result of a search for better numbers as a table and as JSON.
#ifndef GPUSCALE_CLI_REPLAY_TUNE_REPORT_H
#define GPUSCALE_CLI_REPLAY_TUNE_REPORT_H

#include <stdbool.h>

struct backtest;
struct buf;
struct policy;
struct tune;
struct tune_space;

struct tune_report {
	const struct tune *tune;
	const struct tune_space *space;
	const struct backtest *scene;
	double price;                   // of one GPU-hour; NaN: unknown
	double gpus_per_replica;        // > 0
	const struct tune_tests *tests; // of the policy; NULL: none
};

// `wide` shows the whole front and every setting of the peers.
void tune_report_table(const struct tune_report *r, bool wide, struct buf *out);
void tune_report_json(const struct tune_report *r, struct buf *out);

#endif
