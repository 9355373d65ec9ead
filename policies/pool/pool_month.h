// SPDX-License-Identifier: Apache-2.0
// The monthly budget of a pool: how much of it may be spent in this hour, and what the month will have cost.
//
// The budget is released along a straight line: one thirtieth on the first day of the month at once, the rest evenly
// until its end. Spending that lags behind the line (nights, weekends) is available later, and peaks may run ahead of
// the mean by a day's worth. The minimums of the members are set aside until the end of the month. The cap leads the
// spending back to the line within an hour:
//   budget      = 0.999 * perMonth: a thousandth is kept for scale-downs that are carried out late
//   released(t) = min(budget * (1/30 + 29/30 * elapsed(t) / month), budget - minimums * rest(t))
//   cap         = (released(t + h) - spent) / h, h = 1 hour, or the rest of the month when that is shorter
// released() is concave, so spending at most the cap for at most an hour stays below it: the month stays within
// its budget whatever the members ask for, as long as the minimums alone do.
#ifndef GPUSCALE_POLICIES_POOL_POOL_MONTH_H
#define GPUSCALE_POLICIES_POOL_POOL_MONTH_H

#include <stdint.h>

struct pool_request;

#define POOL_SPENT_UNKNOWN (-1)

struct pool_month {
	int64_t start_ms, end_ms; // bounds of the calendar month, UTC
	int64_t now_ms;
	int64_t budget_micro; // budget of the month, in millionths of the currency, 0..POOL_COST_MAX_MICRO
	int64_t spent_micro;  // since start_ms, 0..POOL_COST_MAX_MICRO; or POOL_SPENT_UNKNOWN
	int64_t since_ms;     // when the record of spent_micro starts; before that, the spending is taken to be on the
	                      // line. Up to start_ms: the record is complete
};

// Sets start_ms, end_ms and now_ms of *m for the month of `now_ms`, in ms since the epoch.
void pool_month_at(struct pool_month *m, int64_t now_ms);
// Lowers the hourly budget of *q, or sets one, to what the month allows; call before pool_allocate(), which then gives
// POOL_BUDGET_LIMITED as the reason. Never below the minimums of the members, which take precedence. While the spending
// is unknown, it is taken to be on the line. Returns the cap in millionths per hour.
int64_t pool_month_limit(struct pool_request *q, const struct pool_month *m);
// The cost of the month at its end: spent + rate * rest, in millionths; POOL_SPENT_UNKNOWN while the spending
// is unknown. rate_micro: the present run rate per hour. Take the mean of the last seven days, or of the time since the
// pool exists when that is shorter: a shorter mean takes a weekend for the whole month. A trend is not predicted.
int64_t pool_month_projection(const struct pool_month *m, int64_t rate_micro);

#endif
