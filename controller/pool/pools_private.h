// SPDX-License-Identifier: Apache-2.0
// What the files of controller/pool share; no other file includes it.
#ifndef GPUSCALE_CONTROLLER_POOL_POOLS_PRIVATE_H
#define GPUSCALE_CONTROLLER_POOL_POOLS_PRIVATE_H

#include "base/hash_table.h"
#include "controller/pool/pools.h"
#include "controller/status/state_dir.h"
#include "policies/load/pool_set.h"
#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"

// Whether a pool is shared, and if not, why not. Its members then keep what they have, or scale down.
enum pool_state {
	POOL_SHARED,
	POOL_UNKNOWN,     // the replicas of a member are not known yet, shortly after a start
	POOL_INVALID,     // its object has no valid version
	POOL_UNSUPPORTED, // by this process
	POOL_STATE__COUNT
};

struct json_writer;

struct pool_membership {
	struct pools *pools;
	char *namespace_name, *name, *label_lines;
	void *user;
	UT_hash_handle hh; // by key
	// membership; set by pools_assign_all()
	struct pool *pool, *other; // the pool; a second one that claims the policy too: then it is held in both
	size_t index;              // in pool->members
	bool is_excess;            // the pool has no place for it: held alone, and not counted
	// what is known
	bool is_heard; // it has ticked, or its target could not be read
	bool is_known; // its replicas
	bool has_asked;
	bool is_idle; // paused or dryRun: it keeps what it has
	int32_t asked, min, max;
	int32_t current, existing; // spec.replicas and existing replicas of the target, at the last tick
	bool is_countable;         // `existing` was read at least once
	int64_t lost_ms;           // since when it cannot be read any more (monotonic clock); -1: it can
	int32_t granted;           // by the pool, and not written lower since: spec.replicas count up to it
	int64_t granted_ms;        // when it was granted (monotonic clock)
	int32_t own;               // of `granted`, without what the process before has left at a start
	int32_t in_flight;         // being written; -1: nothing
	int32_t unacked;           // of writes whose outcome is unknown, the largest; -1: none
	int32_t refusals;          // in a row
	int64_t interval_ms, ticked_ms, asked_ms; // monotonic clock
	char key[];                               // "NAMESPACE/NAME", the name as of binding_format()
};

#define POOL_NEVER_MS (INT64_MIN / 2)

struct pool {
	UT_hash_handle hh; // by name
	struct pools *pools;
	struct pool_object *object;        // the newest version; NULL: none
	struct pool_object *valid;         // the last valid version; NULL: none; may be `object`
	const struct gpu_pool *file;       // NULL: none
	const struct gpu_pool *spec;       // in force
	struct pool_status_record *record; // of the status; pool_status.c
	// the members, by key
	struct pool_membership **memberships;
	const struct gpu_pool_entry **entries; // parallel, as those below: what claims each of them
	struct pool_member *members; // parallel; what the entries of the pool give is set by pools_assign_all()
	struct pool_grant *grants;
	size_t n, room;
	size_t n_excess;      // policies that it claims beyond POOL_MEMBERS_MAX
	size_t per_namespace; // with excess: members of one namespace at most
	struct pool_ratio *ratios;
	size_t n_ratios;
	// the last sharing
	bool is_stale;
	int64_t until_mono_ms;  // some input changes by then
	int64_t shared_mono_ms; // when it was; POOL_NEVER_MS: it is not valid at all
	bool is_late;           // an input has changed since, and the next sharing waits
	uint64_t turn;
	enum pool_state state;
	const struct pool_membership *unknown; // a member that the start still waits for; NULL: none
	struct pool_total total;
	int64_t budget_micro; // per hour, as perHour and perMonth allow now; 0: without a budget
	struct pool_ledger ledger;
	char name[];
};

struct pools {
	struct pools_options options;
	struct pool *by_name; // sorted by name
	size_t n;
	struct pool_set files;
	struct pool_membership *memberships;
	size_t n_heard;     // seats
	int64_t started_ms; // monotonic clock; -1: not yet. A start is over once every seat is heard, and begins when
	                    // none is
	bool is_unseated;   // memberships must be computed again
	int64_t read_ms;    // monotonic clock: when a target was last read, and when after a gap without any
	int64_t resumed_ms;
};

// Lets the next pool_share() share the pool, whatever its members ask for.
static inline void pool_invalidate(struct pool *p)
{
	p->is_stale = true;
	p->shared_mono_ms = POOL_NEVER_MS;
}

// Computes which policies belong to which pools, if that may have changed.
void pools_assign_all(struct pools *p);
// Shares the pool as of now, unless nothing has changed since, or a large pool was shared a moment ago
// (POOL_SHARED_AT_ONCE): is_late is then true, and the grants of the last sharing, which fit together whatever has
// changed since, apply. `alone`: this member counts as one that can be moved, although its writes were refused; NULL:
// none. Returns whether the grants may differ from those before.
bool pool_share(struct pool *p, const struct pool_membership *alone, int64_t now_ms, int64_t now_mono_ms);
// Replicas that the member i counts for now.
int32_t pool_counted(const struct pool *p, size_t i);
// Appends why the policy, for which its pool has no place or no right, is held: two pools claim it, or the pool has too
// many.
void pool_put_exclusion(const struct pool_membership *s, struct buf *out);
// ---- what it has spent (pool_spending.c) ----

// What the replicas that the members may hold now cost per hour, in millionths.
double pool_cost_micro(const struct pool *p);
// Counts the time until now_ms. Only the process that shares the pool may count. Without a budget
// nothing is recorded. While the replicas of a member are unknown, the time is counted later.
void pool_spending_count(struct pool *p, int64_t now_ms);
// What the pool has spent in this month by now, in millionths, and since when that is known; POOL_SPENT_UNKNOWN.
int64_t pool_spent(const struct pool *p, int64_t now_ms, int64_t *ret_since_ms);
// What the month will have cost at its end, in millionths; POOL_SPENT_UNKNOWN.
int64_t pool_projected(const struct pool *p, int64_t now_ms);
// Writes the member `spending` of the status; null without a record.
void pool_spending_write(const struct pool *p, int64_t now_ms, struct json_writer *w);
// Queues the record of a pool from a file for writing; slot and fn as in state_dir_put(). Returns 0, or -1 and *e.
int pool_spending_file_write(const struct pool *pool, struct state_dir *dir, struct state_slot *slot, int64_t now_ms,
                             state_written_fn *fn, void *arg, struct err *e);

// The object of the pool is gone: drops what is known of its status (pool_status.c).
void pool_status_forget(struct pool *pool);
// Appends why the pool is not shared: "pool h100 ..".
void pool_put_state(const struct pool *p, struct buf *out);

#endif
