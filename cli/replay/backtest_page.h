// SPDX-License-Identifier: Apache-2.0
// A backtest as one HTML page that needs nothing else: figures, demand and replicas over time, cost against lateness,
// and the worst ten minutes with the trace of every decision.
#ifndef GPUSCALE_CLI_REPLAY_BACKTEST_PAGE_H
#define GPUSCALE_CLI_REPLAY_BACKTEST_PAGE_H

struct backtest_history;
struct backtest_report;
struct buf;
struct err;

// Writes the page to the file `path`, or to standard output for "-". Returns 0, or -1 and *e: ERR_IO with the path, and
// the errors of backtest_run(), since the policy runs once more.
int backtest_page_write(const char *path, const struct backtest_report *r, const struct backtest_history *h,
                        struct err *e);
// Appends the chart of cost against lateness as an SVG document of its own. Sets out->failed without memory.
void backtest_page_frontier(struct buf *out, const struct backtest_report *r);

#endif
