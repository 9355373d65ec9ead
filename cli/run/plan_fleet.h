// SPDX-License-Identifier: Apache-2.0
// Plans the fleets of gpuscale plan: one tick of each, which writes nothing.
#ifndef GPUSCALE_CLI_RUN_PLAN_FLEET_H
#define GPUSCALE_CLI_RUN_PLAN_FLEET_H

#include <stddef.h>
#include <stdint.h>

#include "controller/fleet/fleet.h"
#include "policies/explain/explain.h"

struct connections;
struct observe_sources;
struct policy;

// Zero it before plan_fleets_run().
struct plan_fleets {
	struct connections *connections;
	struct reconcile_env tick;
	struct fleet_env env;
	const struct policy *const *policies; // of the plan
	size_t n_policies;
	struct fleet **fleets;
	size_t n, n_failed;
	struct decided *rows; // one per target that has a decision; valid until plan_fleets_done()
	size_t n_rows, room;
};

// Decides for the targets of those of the policies that are fleets; reports on stderr those that could not be read, and
// targets that are left to others.
void plan_fleets_run(struct plan_fleets *p, struct connections *connections, const struct observe_sources *sources,
                     const struct policy *const *policies, size_t n, int64_t now_ms);
// Call after connections_cancel(), and before the connections are closed.
void plan_fleets_done(struct plan_fleets *p);

#endif
