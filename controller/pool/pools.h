// SPDX-License-Identifier: Apache-2.0
// The pools in force, and the policies that belong to them: shares the GPUs of each pool among its members
// (policies/pool), tick by tick. Each policy has a seat, which keeps what it asked for and what it holds since its last
// tick; a tick of one policy uses the last known numbers of the others. docs/decisions/0024 gives the rules.
#ifndef GPUSCALE_CONTROLLER_POOL_POOLS_H
#define GPUSCALE_CONTROLLER_POOL_POOLS_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash_table.h"
#include "base/schema/schema.h"
#include "controller/status/state_dir.h"
#include "controller/status/status_writer.h"
#include "policies/load/pool_set.h"
#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"

struct decision;
struct event_recorder;
struct log;
struct pool;
struct pools;
struct k8s_call;
struct k8s_client;
struct object_watch;

#define POOLS_MAX            256 // from objects and files together
#define POOL_UID_BYTES       64
#define POOL_FAULT_BYTES     1024  // limit on the error text of an object; longer texts are cut
#define POOL_STALE_INTERVALS 3     // a member that has not ticked for that many intervals, and
#define POOL_STALE_MS        60000 // for that long, counts with what it holds
#define POOL_REFUSALS_MAX    3     // a member whose writes were refused that often in a row counts as fixed
// After a start, no member grows until each has ticked, or could not be read; for at most that long. A member that
// appears later delays no other.
#define POOL_START_MS 60000
// A pool of more than POOL_SHARED_AT_ONCE members is not shared for the tick of each member whose input has changed: a
// millisecond passes for each POOL_MEMBERS_PER_MS further members, or members that change at every tick would keep the
// loop busy. Until then the grants of the last sharing apply.
#define POOL_SHARED_AT_ONCE 1000
#define POOL_MEMBERS_PER_MS 50
// How long replicas that the pool granted count without pods, when the member is fixed, and existing ones after they
// could no longer be counted; after a start, when the grants
// of the process before are not known, spec.replicas count in their place.
#define POOL_GRANTED_MS 120000

#define POOL_TEXT_BYTES_MAX 4096

// What an Event is written about.
enum pool_phase { PHASE_NONE, PHASE_AVAILABLE, PHASE_LIMITED, PHASE_HELD, PHASE_CONFLICT, PHASE__COUNT };

// What pool_status.c knows of the status of a pool.
struct pool_status_record {
	struct status_slot slot;
	struct state_slot file; // of the spending of a pool from a file
	struct log *log;
	struct status_past past; // monotonic clock
	bool is_missing;
	enum pool_phase phase;
};

struct pools_options {
	// Lets the policy of a seat tick soon: its grant has changed. May be NULL.
	void (*ask)(void *user);
	// Called when the pools changed, so that every policy is to be seated again. May be NULL.
	void (*changed)(void *arg);
	void *arg;
	// Why this process cannot share any pool: its members do not grow. NULL: it can.
	const char *unsupported;
};

// One version of an object.
struct pool_object {
	struct arena arena; // of `pool`
	struct gpu_pool pool;
	char uid[POOL_UID_BYTES];
	int64_t generation;
	char fault[POOL_FAULT_BYTES]; // why the newest version is invalid; "": it is valid
};

void pool_object_free(struct pool_object *object); // NULL is fine

struct pools *pools_new(const struct pools_options *options);
// All seats must have been freed. NULL is fine.
void pools_free(struct pools *p);

// ---- where pools come from ----

// Stores the newest version of an object, which pools_* free. A version with a fault leaves the last valid one in
// force; without one, its members do not grow. An object ranks before a file of the same name. Returns -1 and *e:
// ERR_LIMIT above POOLS_MAX.
int pools_put_object(struct pools *p, struct pool_object *object, struct err *e);
void pools_remove_object(struct pools *p, const char *name);
// What an object's status reports as spent. It is the record of this process too unless this process has counted
// longer: so the next leader continues where the last one wrote.
void pools_put_spending(struct pools *p, const char *name, const char *uid, const struct pool_ledger *spending);
// Replaces all pools from files by those of `set`, and takes over its contents. Returns -1 and *e: ERR_LIMIT.
int pools_put_files(struct pools *p, struct pool_set *set, struct err *e);
// Returns the name of a pool that names this policy as a member; NULL: none does. Valid until the loop runs.
const char *pools_find_claim(const struct pools *p, const char *namespace_name, const char *name,
                             const char *label_lines);

// ---- the policies ----

// Seats a binding, which becomes a member of its own. Until its first tick, the replicas of its target are unknown:
// they count as 0, and after a start no member of its pool grows (POOL_START_MS). name, key: of the policy and its
// binding. label_lines: as in struct policy. `user` is passed to ask().
struct pool_membership *pool_membership_new(struct pools *p, const char *namespace_name, const char *name,
                                            const char *key, const char *label_lines, void *user);
// The labels of the policy may have changed, and with them its pool.
void pool_membership_set_labels(struct pool_membership *s, const char *label_lines);
// The replicas of the policy's target are unknown until the next tick: the target is a different one, or another
// process may have scaled it. Its earlier replicas are counted for POOL_GRANTED_MS at most. now_mono_ms: the monotonic
// clock. NULL is fine.
void pool_membership_forget(struct pool_membership *s, int64_t now_mono_ms);
// The policy is no longer in force. NULL is fine.
void pool_membership_free(struct pool_membership *s);

// ---- a tick of one policy ----
// What it reports to its pool, and what the pool grants. Every function accepts a seat of NULL: the policy is in no
// pool.

struct pool_tick {
	const struct policy *policy;
	int32_t existing_replicas; // of the target; -1: unknown, for POOL_GRANTED_MS as at the tick before
	int32_t unacked;           // replicas of a write whose outcome is unknown; -1: none
	bool dry_run;              // nothing will be written
	int64_t now_ms, now_mono_ms;
};

// Shares the pool as of now and limits *d, the decision of this tick, to what the member is granted. Appends why
// (the sentence without its numbers) to `text` when it changed the decision. From now until pool_membership_end() the
// member holds what *d writes, so that no other member is granted the same GPUs.
void pool_membership_decide(struct pool_membership *s, const struct pool_tick *tick, struct decision *d,
                            struct buf *text);
// The target could not be read. A target that does not exist holds nothing; any other keeps what it held, which is
// nothing if it was never read, for POOL_GRANTED_MS, or for as long as an outage lasts.
void pool_membership_unreadable(struct pool_membership *s, const struct err *error, int64_t now_mono_ms);
// What became of a write.
enum pool_write {
	POOL_WRITE_DONE,
	POOL_WRITE_LOST,    // it may have taken effect, or still will
	POOL_WRITE_REFUSED, // it did not take effect
	POOL_WRITE_UNSENT
};

// The write of `to` replicas has ended.
void pool_membership_written(struct pool_membership *s, int32_t to, enum pool_write outcome);
// The tick has ended.
void pool_membership_end(struct pool_membership *s);

// ---- what the endpoints show ----

struct pool_summary {
	const char *name;
	const struct pool *pool; // for pools_get_member(), until control returns to the event loop
	int64_t cap_gpus, used_gpus, requested_gpus, granted_gpus;
	size_t n_members, n_limited;
	size_t n_excess; // policies beyond POOL_MEMBERS_MAX, which are held
	// of a pool with a budget, in millionths of the currency
	bool has_budget;
	int64_t cost_micro, budget_micro; // per hour; the budget as perHour and perMonth allow now
	int64_t month_micro;              // perMonth; 0: none
	struct pool_ledger spending;
	int64_t projected_micro; // at the end of the month; POOL_SPENT_UNKNOWN without a record
};
// Fills *ret for the pool after `after` (NULL: the first), by name. Returns the pool, NULL at the end.
const struct pool *pools_next(struct pools *p, const struct pool *after, int64_t now_ms, int64_t now_mono_ms,
                              struct pool_summary *ret);

struct pool_member_summary {
	const char *namespace_name, *name; // name: as of binding_format()
	int64_t used_gpus, requested_gpus, granted_gpus;
};
// Fills *ret for the member i of n_members, by namespace and name.
void pools_get_member(const struct pool *pool, size_t i, struct pool_member_summary *ret);

// ---- the status of the objects, and the spending ----
// A status is written only when something changed and at most every POOL_STATUS_MS, with Events on transitions. The
// record of the spending is written every POOL_SPENDING_MS, and with everything else.

#define POOL_STATUS_CHECK_MS  5000   // interval of the checks
#define POOL_STATUS_MS        15000  // between two writes of one status
#define POOL_SPENDING_MS      300000 // between two writes of the record of a pool's spending
#define POOL_STATUS_BYTES_MAX (1024 * 1024)

struct pool_status_env { // owns nothing
	struct status_writer *writer;
	struct event_recorder *events;
	struct state_dir *dir; // for the spending of pools from files; NULL: it is not recorded
	struct log *log;       // errors of `dir`
	// The API server answered the write of a pool's status with 404.
	void (*on_missing)(void *arg, const char *name);
	void *arg;
};

// Counts what the pools spend, and writes what has changed. Call it every POOL_STATUS_CHECK_MS, in the one process that
// shares the pools. Of pools from files, only the record of their spending is written. env must outlive the pools. If
// its writer is NULL, nothing is written.
void pool_status_write_all(struct pools *p, const struct pool_status_env *env, int64_t now_ms, int64_t now_mono_ms);
// Reads status.spending of a GPUPool in JSON. Returns whether there is one; an invalid one counts as none.
bool pool_spending_read(const char *json, size_t len, struct pool_ledger *ret);
// Restores the record of each pool from a file that has a budget and no record yet. Logs a record that cannot be used,
// and without a directory (dir is NULL) every pool that will have none.
void pool_spending_files_read(struct pools *p, struct state_dir *dir, struct log *log);

// ---- what the files of controller/pool share; others read the structs ----

// Whether a pool is shared, and if not, why not. Its members then keep what they have, or scale down.
enum pool_state {
	POOL_SHARED,
	POOL_UNKNOWN,     // the replicas of a member are not known yet, shortly after a start
	POOL_INVALID,     // its object has no valid version
	POOL_UNSUPPORTED, // by this process
	POOL_STATE__COUNT
};

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

// Appends why the pool is not shared: "pool h100 ..".
void pool_put_state(const struct pool *p, struct buf *out);

// ---- pool_watch.c ----

#define POOL_WATCH_PLURAL   "gpupools"
#define POOL_WATCH_ASK_MS   60000
#define POOL_WATCH_RETRY_MS 5000 // after an error of that lookup

struct pool_watch_options { // owns nothing
	struct k8s_client *client;
	struct pools *pools;
	struct log *log;
	// Called when the watch has delivered its first list, or cannot: the pools are as known as they can be.
	void (*on_answer)(void *arg);
	void *arg;
};

// Other files read it; pool_watch.c alone changes it.
struct pool_watch {
	struct pool_watch_options options;
	struct object_watch *objects; // NULL: the cluster does not serve pools
	struct k8s_call *asking;
	struct event timer; // asks, or closes a watch of a resource that is gone
	bool is_gone;
	bool has_answer;                      // on_answer was called
	char *error;                          // logged; NULL: none
	struct schema_errors errors, unknown; // of the current object
};

// Starts to look for pools.
struct pool_watch *pool_watch_new(const struct pool_watch_options *options);
// The pools stay. Call before the client is freed. NULL is fine.
void pool_watch_free(struct pool_watch *w);

// Returns a version of an object for pools_put_object(), which frees it. Its errors are left in `errors`, and its
// unknown fields, which have no effect, in `unknown`; an object with errors has a fault. Aborts when memory is
// exhausted (base/alloc.h).
struct pool_object *pool_object_read(const char *name, const char *json, size_t len, struct schema_errors *errors,
                                     struct schema_errors *unknown);
// Writes errors as one line, cut to `size` bytes.
void pool_object_put_errors(const struct schema_errors *errors, char *out, size_t size);

#endif
