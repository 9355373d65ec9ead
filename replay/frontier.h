// SPDX-License-Identifier: Apache-2.0
// Cost against lateness: a policy at several objectives, or with its targets scaled when it has none, beside other
// autoscalers, fixed counts and the clairvoyant bound, on one recording in closed loop.
#ifndef GPUSCALE_REPLAY_FRONTIER_H
#define GPUSCALE_REPLAY_FRONTIER_H

#include <stdbool.h>
#include <stddef.h>

#include "replay/backtest.h"

struct err;
struct policy;
struct recording;

#define FRONTIER_POINTS_MAX 64

struct frontier_point {
	enum backtest_kind kind;
	char name[BACKTEST_NAME_BYTES]; // "objective 0.3%", "targets x 0.8", "fixed 12"
	double setting;                 // percent late, factor, value of the peer's setting, or replicas
	bool is_chosen;                 // the policy as it is
	bool is_reached;                // bound: the schedule keeps the lateness of its setting
	struct score score;
};

struct frontier {
	struct backtest scene;
	struct frontier_point *points; // by kind, then in the order of their settings; heap
	size_t n_points;
};

// Plays all points on up to `threads` threads; the result does not depend on their number. `recording` and `file` must
// outlive the result. Returns 0, or -1 and *e: the errors of backtest_run(), and ERR_UNSUPPORTED for a policy without
// objective and without a target or watermarks. The caller calls frontier_done() in both cases.
int frontier_run(const struct backtest_config *config, const struct policy *policy, const struct recording *recording,
                 const char *file, unsigned threads, struct frontier *ret, struct err *e);
void frontier_done(struct frontier *f);

#endif
