// SPDX-License-Identifier: Apache-2.0
// Cost against lateness: the rows of a backtest with a sweep. The policy at several objectives, or with its targets
// scaled when it has none, next to other autoscalers, fixed counts and the clairvoyant bound at each lateness.
#ifndef GPUSCALE_REPLAY_BACKTEST_SWEEP_H
#define GPUSCALE_REPLAY_BACKTEST_SWEEP_H

struct backtest;
struct closed_loop;
struct err;
struct policy;

// Adds the rows to *b, by kind and then in the order of their settings, and plays them in `loop` on up to
// b->config.sweep_threads threads; the result does not depend on their number. The name of the policy as it is ends
// with "(present)", that of a bound that keeps the lateness of no schedule with "(not reached)". Returns 0, or -1 and
// *e: the errors of policy_candidate_init(), ERR_UNSUPPORTED for a policy without objective and without a target or
// watermarks, ERR_INTERNAL.
int backtest_sweep_run(struct backtest *b, const struct policy *policy, const struct closed_loop *loop, struct err *e);

#endif
