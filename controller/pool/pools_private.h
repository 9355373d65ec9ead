// SPDX-License-Identifier: Apache-2.0
// What the files of controller/pool share; no other file includes it.
#ifndef GPUSCALE_CONTROLLER_POOL_POOLS_PRIVATE_H
#define GPUSCALE_CONTROLLER_POOL_POOLS_PRIVATE_H

#include <uthash.h>

#include "controller/pool/pools.h"
#include "policies/load/pool_set.h"
#include "policies/pool/pool_allocate.h"
#include "policies/pool/pool_grant.h"
#include "policies/pool/pool_request.h"

// Whether a pool is shared, and if not, why not. Its members then keep what they have, or scale down.
enum pool_state {
	POOL_SHARED,
	POOL_UNKNOWN,     // the replicas of a member are not known yet
	POOL_OVERBOOKED,  // the minimums need more than the cap
	POOL_INVALID,     // its object has no valid version
	POOL_TOO_LARGE,   // more than POOL_MEMBERS_MAX
	POOL_UNSUPPORTED, // by this process
	POOL_STATE__COUNT
};

struct pool_seat {
	struct pools *pools;
	char *namespace_name, *name;
	void *user;
	UT_hash_handle hh; // by key
	// membership; set by pools_seat_all()
	struct pool *pool, *other; // the pool; a second one that claims the policy too: then it is held in both
	size_t index;              // in pool->members
	// what is known
	bool is_known; // its replicas
	bool has_asked;
	bool is_idle; // paused or dryRun: it keeps what it has
	int32_t asked, min, max;
	int32_t current, status;                  // spec and status of the target, at the last tick
	int32_t in_flight;                        // being written; -1: nothing
	int32_t unacked;                          // of writes whose outcome is unknown, the largest; -1: none
	int32_t refusals;                         // in a row
	int64_t interval_ms, ticked_ms, asked_ms; // monotonic clock
	char key[];                               // "NAMESPACE/NAME"
};

struct pool {
	UT_hash_handle hh; // by name
	struct pools *pools;
	struct pool_object *object;        // the newest version; NULL: none
	struct pool_object *valid;         // the last valid version; NULL: none; may be `object`
	const struct gpu_pool *file;       // NULL: none
	const struct gpu_pool *spec;       // in force
	struct pool_status_record *record; // of the status; pool_status.c
	// the members, by key
	struct pool_seat **seats;
	struct pool_member *members; // parallel; what the entries of the pool give is set by pools_seat_all()
	struct pool_grant *grants;
	size_t n, room;
	struct pool_ratio *ratios;
	size_t n_ratios;
	// the last sharing
	bool is_stale;
	int64_t until_mono_ms; // some input changes by then
	uint64_t turn;
	enum pool_state state;
	const struct pool_seat *unknown; // POOL_UNKNOWN: one of them
	struct pool_total total;
	char name[];
};

struct pools {
	struct pools_options options;
	struct pool *by_name; // sorted by name
	size_t n;
	struct pool_set files;
	struct pool_seat *seats;
	bool is_unseated; // memberships must be computed again
};

// Computes which policies belong to which pools, if that may have changed.
void pools_seat_all(struct pools *p);
// Shares the pool as of now, unless nothing has changed since. `alone`: this member counts as one that can be moved,
// although its writes were refused; NULL: none. Returns whether the grants may differ from those before.
bool pool_share(struct pool *p, const struct pool_seat *alone, int64_t now_ms, int64_t now_mono_ms);
// Replicas that the member may hold now.
int32_t pool_seat_held(const struct pool_seat *s);
// The object of the pool is gone: drops what is known of its status (pool_status.c).
void pool_status_forget(struct pool *pool);
// Appends why the pool is not shared: "pool h100 ..".
void pool_put_state(const struct pool *p, struct buf *out);

#endif
