// SPDX-License-Identifier: Apache-2.0
// Which policies this process works on when several processes share them. A reconciler lives as long as the process
// owns the shard of its policy; a lost shard is released once no tick or status write of its policies is in flight.
#ifndef GPUSCALE_CONTROLLER_POLICY_POLICY_OWNERSHIP_H
#define GPUSCALE_CONTROLLER_POLICY_POLICY_OWNERSHIP_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct event;
struct ha_options;
struct managed_policies;
struct managed_policy;
struct policy_ref;
struct shards;
struct status_writer;

// Zero it before ownership_open().
struct ownership {
	struct managed_policies *all;
	const struct status_writer *writer; // NULL: no status is written to the API server
	struct shards *shards;              // NULL: this process owns all policies
	struct owned_shard {
		bool is_owned, is_leaving; // leaving: lost, and requests for its policies are still in flight
		uint32_t term;             // how often it was acquired
	} * shard;
	int32_t n_shards;
	struct event *leaving;
};

// election: NULL: this process owns every policy. all and writer must outlive `o`.
int ownership_open(struct ownership *o, struct managed_policies *all, struct ha_options *election,
                   const struct status_writer *writer, struct err *e);
// Releases the leases of this process, which takes one request timeout at most. Call after connections_cancel().
void ownership_resign(struct ownership *o);
void ownership_close(struct ownership *o);
// Returns a number that increases each time this process acquires the policy; 0: the process does not own it.
uint32_t ownership_term(const struct managed_policy *m);
// The callback of struct restore_env; arg: the ownership.
bool ownership_may_restore(void *arg, const struct policy_ref *body, struct err *e);
// Returns whether this process does what only one of those that share the policies may do.
bool ownership_is_first(const struct ownership *o);

#endif
