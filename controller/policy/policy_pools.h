// SPDX-License-Identifier: Apache-2.0
// Makes the policies members of their pools (controller/pool), reads pools from the API server and from files, and
// writes the status of pools. A policy becomes a member as soon as it is eligible, before its first tick: until then,
// what its target has is unknown, so no other member of its pool grows.
#ifndef GPUSCALE_CONTROLLER_POLICY_POLICY_POOLS_H
#define GPUSCALE_CONTROLLER_POLICY_POLICY_POOLS_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>

struct err;
struct event_recorder;
struct managed_policies;
struct managed_policy;
struct policy;
struct policy_pools;
struct pool_membership;
struct pool_summary;
struct pool_watch;
struct pools;
struct state_dir;
struct status_writer;

struct policy_pools_options {         // nothing of it owned
	struct managed_policies *all; // with its ownership
	bool watches;                 // pools come from the API server, too
	bool once;
	const char *const *paths; // files and folders of policies, which may contain pools
	size_t n_paths;
	struct status_writer *writer;  // NULL: no status is written to the API server
	struct event_recorder *events; // NULL: none
	struct state_dir *dir;         // where the spending of pools from files is saved; NULL: nowhere
};

struct policy_pools {
	struct policy_pools_options options;
	struct pools *pools;
	struct pool_watch *watch; // NULL: no pools from the API server
	struct event timer;       // of the status
};

struct policy_pools *policy_pools_new(const struct policy_pools_options *options);
// Stops the watch. Call before the client is freed.
void policy_pools_disconnect(struct policy_pools *p);
// Call after the policies were freed. NULL is fine, as it is for the function above.
void policy_pools_free(struct policy_pools *p);
// Reads the pools of the policy files again, before the policies: the callback of struct file_source_options; arg: the
// pools. If one is invalid, all stay as they were, and *e says so.
int policy_pools_read_files(void *arg, struct err *e);
// Makes the policy a member. `member` is the version that is in force or about to be; NULL: the policy is no longer in
// force, and it leaves its pool unless a tick is in progress.
void policy_pools_sync(struct managed_policy *m, const struct policy *member);
// Takes the policy out of its pool. No tick may be in progress.
void policy_pools_leave(struct managed_policy *m);
// The callback of struct reconcile_env; owner: the managed policy.
struct pool_membership *policy_pools_membership(void *owner);
// Fills ret with the pools, by name, and returns how many there are: at most POOLS_MAX (controller/pool/pools.h). The
// names are valid until the loop runs.
size_t policy_pools_summarize(struct policy_pools *p, struct pool_summary *ret);

#endif
