// SPDX-License-Identifier: Apache-2.0
// Which policies this process works on when several processes share them. Policies are spread over shards
// (runtime/shard/shard_hash.h), each shard is one Lease (k8s/lease/lease_rules.h), and the holder of the Lease owns
// the policies of the shard. With one shard this is leader election.
//
// With more than one, each process also renews a member Lease that shows that it is running. From the member Leases,
// all processes compute the same assignment of shards; each acquires its shards once they are free, and releases the
// others. The assignment only balances: two processes that disagree about it still never own the same shard.
//
// All processes must use the same number of shards, which the Lease of shard 0 carries. A process with another number
// waits, so a rolling update of the number passes through a moment in which no process owns a shard, and never through
// one in which two processes own the same policy.
//
// All intervals use the boot clock. When the wall clock is set by more than a write tolerates, the process releases its
// shards and acquires them again with fresh state, because the times of its samples would be wrong.
#ifndef GPUSCALE_RUNTIME_SHARD_SHARDS_H
#define GPUSCALE_RUNTIME_SHARD_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/client/k8s_client.h"
#include "k8s/lease/lease_rules.h"
#include "runtime/shard/shard_hash.h"

struct log;
struct shards;

struct shards_callbacks {
	// This process owns the shard from now on. Its policies start with fresh state, from their status and range
	// queries, as after a start.
	void (*on_gained)(void *arg, int32_t shard);
	// This process does not own the shard any more, and must not write anything for its policies (shards_guard
	// prevents it).
	void (*on_lost)(void *arg, int32_t shard);
	// Returns whether a request for the policies of a lost shard is in flight. Until then, or for as long as a
	// write can take, its lease is kept.
	bool (*is_busy)(void *arg, int32_t shard);
};

struct shards_options {
	const struct k8s_config *config; // access to the API server, for a separate client; not owned
	k8s_observe_fn *observe;         // observer of that client; may be NULL
	void *observe_arg;
	struct event_base *loop; // not owned, as the next two
	const struct clock *clock;
	struct log *log;                                    // NULL: none
	const char *namespace_name, *lease_name, *identity; // copied
	struct lease_timing timing;
	int32_t n_shards; // 1..SHARDS_MAX
	struct shards_callbacks callbacks;
	void *arg;
};

// Starts to acquire leases at once. Returns NULL and *e for invalid arguments.
struct shards *shards_new(const struct shards_options *options, struct err *e);
// Releases all leases, with on_lost for each, and retries failed releases. Runs the loop until that is done: for a
// write timeout and a renew deadline at most, when the leases have expired anyway.
void shards_stop(struct shards *s);
// Frees all without releasing the leases. No callback runs any more. NULL is fine.
void shards_free(struct shards *s);

// ---- permissions ----
// With s NULL (no leader election), this process owns everything.

// Returns the shard of a policy.
int32_t shards_of(const struct shards *s, const char *namespace_name, const char *name);
// Returns a number that increases each time this process acquires the shard; 0: the process does not own it.
uint32_t shards_owned_term(const struct shards *s, int32_t shard);
// Returns whether the policy may be written now: a write that takes no longer than lease_write_timeout_ms() ends
// before another process can own the policy. Else returns false and *e (ERR_CANCELED).
bool shards_may_write(struct shards *s, const char *namespace_name, const char *name, struct err *e);
// Returns the largest clock step, in ms, after which the leases are kept; a larger step releases all of them.
int64_t shards_clock_limit_ms(const struct shards *s);
// The callbacks of struct k8s_client_options; arg is the struct shards. No write leaves this process unless each of its
// shards is certain to stay its own for as long as a write takes, and none was released since the write was queued.
int shards_guard(void *s, struct err *e);
uint64_t shards_term(void *s);

// ---- for metrics and endpoints ----
struct shards_view {
	const char *identity, *namespace_name, *lease_name;
	const char *leader; // the identity of the holder of the only shard; "": unknown, or there are several shards
	int32_t n_shards, n_owned;
	size_t n_members;      // known running processes, this one included; 1 with one shard
	uint64_t gained, lost; // shards, since the start
	const char *error;     // why leases cannot be read or written; "": they can
};
void shards_get_view(const struct shards *s, struct shards_view *ret_view);

#endif
