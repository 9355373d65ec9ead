// SPDX-License-Identifier: Apache-2.0
// A controller in the loop of a unit test, with a fake API server and a scripted Prometheus, on a manual clock.
#ifndef GPUSCALE_TEST_SUPPORT_CONTROLLER_WORLD_H
#define GPUSCALE_TEST_SUPPORT_CONTROLLER_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/controller.h"
#include "controller/source/policy_store.h"
#include "runtime/connections.h"
#include "runtime/options/controller_options.h"
#include "test/fake/k8s_harness.h"

#define WORLD_SPACE "serving" // the namespace of all policies

struct managed_policy;
struct metrics;
struct policy_ref;
struct query_server;
struct ticks_stats;

struct world {
	struct harness h;
	struct query_server *queries;
	struct connections connections;
	struct metrics *metrics;
	struct ha_options election;
	struct controller *c;
	char dir[32]; // for saved state
	bool is_slow; // the queries hang
	int n_sums;   // queries that cannot be combined
};

// For cmocka. The second one has an election with two shards, and owns both.
int world_setup(void **state);
int world_setup_with_election(void **state);
int world_teardown(void **state);
// Replaces the controller by a new one, as after a start of the process. The clock continues.
void world_restart(struct world *w);

// Returns the policy of a document in JSON, with one reference.
struct policy_ref *world_policy(const char *json, int generation, int64_t interval_ms);
// Puts policy number i, for a Deployment of its own; world_put_for(): for the Deployment `target`. Another generation
// is another spec.
void world_put(struct world *w, enum policy_source source, int i, int generation, int64_t interval_ms);
void world_put_for(struct world *w, enum policy_source source, int i, int generation, int64_t interval_ms,
                   const char *target);
void world_take_away(struct world *w, enum policy_source source, int i);
// Puts a pool of that many GPUs, whose members are all policies of the namespace.
void world_put_pool(struct world *w, int gpus);
// Returns the first binding of policy number i; NULL: there is none.
struct managed_policy *world_member(const struct world *w, int i);
struct ticks_stats world_stats(const struct world *w);

#endif
