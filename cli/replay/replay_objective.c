// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/replay_objective.h"

#include <math.h>

#include "cli/replay/replay_input.h"
#include "policies/engine/policy.h"

void replay_objective_clear(struct backtest_config *c)
{
	c->late_ratio = c->wait_s = NAN;
}

void replay_objective_complete(struct backtest_config *c, const struct policy *p)
{
	if (isnan(c->late_ratio))
		c->late_ratio = p->objective.set ? p->objective.late_ratio : REPLAY_LATE_DEFAULT;
	if (isnan(c->wait_s))
		c->wait_s = p->objective.set ? (double)p->objective.wait_ms / 1000 : REPLAY_WAIT_DEFAULT_S;
}
