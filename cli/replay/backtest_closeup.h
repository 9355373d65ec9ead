// SPDX-License-Identifier: Apache-2.0
// The worst ten minutes of a backtest for its page: demand, replicas and wait in steps, and every decision with its
// trace.
#ifndef GPUSCALE_CLI_REPLAY_BACKTEST_CLOSEUP_H
#define GPUSCALE_CLI_REPLAY_BACKTEST_CLOSEUP_H

struct backtest_report;
struct buf;
struct err;
struct backtest_history;

// Runs the policy of the backtest once more, which gives the same decisions, and appends the section. Returns 0, or -1
// and *e as backtest_run().
int backtest_closeup_put(struct buf *out, const struct backtest_report *r, const struct backtest_history *h,
                         struct err *e);

#endif
