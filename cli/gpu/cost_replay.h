// SPDX-License-Identifier: Apache-2.0
// What a Horizontal Pod Autoscaler would have run instead of a policy: a replay (replay/backtest.h) of what a
// Prometheus recorded of the policy.
#ifndef GPUSCALE_CLI_GPU_COST_REPLAY_H
#define GPUSCALE_CLI_GPU_COST_REPLAY_H

#include "replay/backtest.h"

struct buf;
struct cost_period;
struct err;
struct policy;
struct prometheus_options;

struct cost_hpa {
	double more_s;                  // replica-seconds that it would have run beyond those that ran; may be negative
	char name[BACKTEST_NAME_BYTES]; // "HPA utilization 0.5"
	double late_percent;            // of its requests; NaN without requests
};

// Replays the demand of the policy over the period with the settings of the HPA of replay/peers.h. The result is that
// of the cheapest one that keeps the objective of the policy (without one, at most 1 % of the requests wait longer than
// 10 s), otherwise of the least late. Appends what is missing in the recording to `notes`, one line each. Returns 0, or
// -1 and *e: as replay_fetch() and backtest_run(), ERR_NOT_FOUND when the replicas that ran are not recorded.
int cost_replay_hpa(const struct prometheus_options *prometheus, const struct policy *policy,
                    const struct cost_period *period, struct cost_hpa *ret, struct buf *notes, struct err *e);

#endif
