// SPDX-License-Identifier: Apache-2.0
// The charts of a backtest's page: demand and replicas over time, with a checkbox for each curve, and cost against
// lateness.
#ifndef GPUSCALE_CLI_REPLAY_BACKTEST_CHARTS_H
#define GPUSCALE_CLI_REPLAY_BACKTEST_CHARTS_H

#include "cli/replay/svg_chart.h"

struct backtest_history;
struct backtest_report;
struct backtest_row;
struct buf;
struct err;

// The look of a row, in every chart and in the table.
enum chart_style backtest_charts_style(const struct backtest_row *row);
// Appends a section. Returns 0, or -1 and *e (ERR_INTERNAL).
int backtest_charts_put_over_time(struct buf *out, const struct backtest_report *r, const struct backtest_history *h,
                                  struct err *e);
// Append cost against lateness: as a section, and as a document of its own. Set out->failed without memory.
void backtest_charts_put_frontier(struct buf *out, const struct backtest_report *r);
void backtest_charts_put_document(struct buf *out, const struct backtest_report *r);
// Appends the rules that hide a curve while its checkbox is not checked, for the inside of a <style> element.
void backtest_charts_put_toggle_rules(struct buf *out);

#endif
