// SPDX-License-Identifier: Apache-2.0
// The objective of backtest and tune: what --objective leaves open comes from the policy.
#ifndef GPUSCALE_CLI_REPLAY_REPLAY_OBJECTIVE_H
#define GPUSCALE_CLI_REPLAY_REPLAY_OBJECTIVE_H

struct backtest_config;
struct policy;

// Call it before the flags are parsed: nothing is set.
void replay_objective_clear(struct backtest_config *c);
// Call it afterwards: sets what no flag has set to that of the policy, or to 1 % and 10 s.
void replay_objective_complete(struct backtest_config *c, const struct policy *p);

#endif
