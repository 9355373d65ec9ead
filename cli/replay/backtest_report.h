// SPDX-License-Identifier: Apache-2.0
// Renders a backtest as a table, as JSON and as CSV. Each names the mode: closed loop or open loop.
#ifndef GPUSCALE_CLI_REPLAY_BACKTEST_REPORT_H
#define GPUSCALE_CLI_REPLAY_BACKTEST_REPORT_H

#include <stdbool.h>

#include "base/num.h"
#include "cli/term/table.h"
#include "replay/backtest.h"

struct buf;
struct policy;
struct variant_cost;

struct backtest_report {
	const struct backtest *backtest;
	const struct policy *policy;
	double price;                        // of one GPU-hour; NaN: unknown
	double gpus_per_replica;             // > 0
	const char *input_notes;             // what is missing in the recording, one sentence per line
	const struct variant_cost *variants; // of the policy's row; NULL: the policy has none
	const char *currency;                // of their prices
};

double backtest_gpu_hours(const struct backtest_report *r, const struct backtest_row *row);
double backtest_cost(const struct backtest_report *r, const struct backtest_row *row); // NaN without a price

// `wide` shows every setting of the peers, otherwise only the best one of each.
void backtest_report_table(const struct backtest_report *r, bool wide, struct buf *out);
void backtest_report_json(const struct backtest_report *r, struct buf *out);
void backtest_report_csv(const struct backtest_report *r, struct buf *out);
// Writes a sentence without its period: what the cheapest row of the kind that is no later than the policy would have
// cost, or, when that is not cheaper, the cheapest row within the objective. Writes nothing without such a row, or
// without requests. Returns true when that row is cheaper than the policy.
bool backtest_report_beside(const struct backtest_report *r, enum backtest_kind kind, struct buf *out);
// "Closed loop (simulated)"
const char *backtest_report_mode(const struct backtest *b);
// Returns a figure as the table shows it: two decimals and the unit, "-" for NaN, "never served" for infinity.
struct table_text backtest_report_figure(double v, const char *unit);
// Returns a duration for people, rounded: "7d", "20s".
struct table_text backtest_report_duration(int64_t ms);
// Writes the start-up time: "2m", or "20s and 2 more, drawn with seed 7".
void backtest_report_startups(const struct backtest_report *r, struct buf *out);
// Prints, a line each on standard error, what the replicas of a closed loop serve and how long they take to start where
// that was learnt or given, and how many there are at the start where they are not the recorded ones.
void backtest_report_print_start(const struct backtest *b);
// What limits the result, one sentence per line: gaps, interpolation, signals that do not react, missing history.
void backtest_report_notes(const struct backtest_report *r, struct buf *out);

#endif
