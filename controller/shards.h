// SPDX-License-Identifier: Apache-2.0
// Which policies this process works on, when several processes share them. Policies are spread over shards
// (controller/shard_hash.h), each shard is one Lease (k8s/lease_rules.h), and who holds the lease owns its policies:
// nothing else counts. With one shard this is leader election.
//
// With more than one, each process also renews a Lease of its own that only says that it lives. From those, each works
// out alike who ought to have which shard, takes what is its own once it is free, and gives up what is another's. That
// is only about balance: two processes that disagree for a while still never own the same shard.
//
// The number of shards is part of what processes must agree on, as it says which policies are in which: shard 0's lease
// carries it. Who goes by another number waits, so a rolling update from one number to another passes through a moment
// in which nobody owns anything, never through one in which two own the same policy.
//
// Everything is about the boot clock. When the wall clock is set by more than a write could tolerate, the process gives
// up what it owns and takes it anew, with fresh state: the samples it had would be stamped wrong.
#ifndef GPUSCALE_CONTROLLER_SHARDS_H
#define GPUSCALE_CONTROLLER_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/shard_hash.h"
#include "k8s/k8s_client.h"
#include "k8s/lease_rules.h"

struct clock;
struct err;
struct event_base;
struct k8s_config;
struct log;
struct shards;

struct shards_callbacks {
	// This process owns the shard from now on: its policies begin with fresh state, from their status and a range
	// query, as after a start.
	void (*on_gained)(void *arg, int32_t shard);
	// It does not, from now on: nothing about its policies may be written any more (and nothing will be: see
	// shards_guard). What is known of them may be out of date once it comes back. shards_settled() is called when
	// nothing about them is under way any more, at once or later.
	void (*on_lost)(void *arg, int32_t shard);
};

struct shards_options {
	const struct k8s_config *config; // of the API server; for a client of its own. Copied
	k8s_observe_fn *observe;         // of that client; may be NULL
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

// Starts to seek at once. NULL and *e for unusable arguments.
struct shards *shards_new(const struct shards_options *options, struct err *e);
// Gives everything up (on_lost is called for each), tells the server, again if it must, then calls done, from the loop:
// after a write timeout and a renew deadline at the latest, when the leases are over anyway.
void shards_stop(struct shards *s, void (*done)(void *arg), void *arg);
// Forgets everything; the server is not told, no callback runs any more. NULL is fine.
void shards_free(struct shards *s);

// Nothing about the policies of this shard is under way any more; see on_lost.
void shards_settled(struct shards *s, int32_t shard);

// ---- asked before anything is done ----
// With s NULL (no election) everything is owned and may be written.

// The shard of a policy.
int32_t shards_of(const struct shards *s, const char *namespace_name, const char *name);
// Is the policy this process's to work on?
bool shards_owns(const struct shards *s, const char *namespace_name, const char *name);
// May something about it be written now, and will the write have ended before anybody else may own it, if it takes no
// longer than shards_write_timeout_ms()? Else false, *e says why (ERR_CANCELED).
bool shards_may_write(struct shards *s, const char *namespace_name, const char *name, struct err *e);
// How long a write may take: the timeout of each attempt. 0: no limit (s NULL).
int64_t shards_write_timeout_ms(const struct shards *s);
// The last guards, for struct k8s_client_options (may_write, write_term; arg is the struct shards): no write leaves
// this process unless every shard that it believes to own is its own for long enough, and none was given up since the
// write was asked for.
int shards_guard(void *s, struct err *e);
uint64_t shards_term(void *s);

// ---- what is shown ----
struct shards_view {
	const char *identity, *namespace_name, *lease_name;
	int32_t n_shards, n_owned;
	size_t n_members;      // processes that live, as far as known, this one included; 1 when there is one shard
	uint64_t gained, lost; // shards, since the start
	uint64_t clock_steps;
	const char *error; // why leases cannot be read or written now; "" when they can
};
void shards_get_view(const struct shards *s, struct shards_view *ret_view);
// "owned", "taking", "leaving" or "away".
const char *shards_state_name(const struct shards *s, int32_t shard);
// The identity that holds the shard, as far as known; "" = nobody.
const char *shards_holder(const struct shards *s, int32_t shard);

#endif
