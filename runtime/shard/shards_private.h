// SPDX-License-Identifier: Apache-2.0
// Data shared by the shards*.c files; no other product file includes it.
#ifndef GPUSCALE_RUNTIME_SHARD_SHARDS_PRIVATE_H
#define GPUSCALE_RUNTIME_SHARD_SHARDS_PRIVATE_H

#include <event2/event_struct.h>

#include "base/err.h"
#include "base/hash_table.h"
#include "k8s/cache/informer.h"
#include "k8s/lease/lease.h"
#include "k8s/lease/lease_record.h"
#include "runtime/shard/clock_step_detector.h"
#include "runtime/shard/shards.h"

struct http_client;

#define SHARDS_LEASE_NAME_BYTES 51 // with "-member-" and a hash it still is a label's value

// ---- the leases of one group, as the watch and the polled lists report them, and since when each has been unchanged

struct lease_cache_entry {
	struct informer_item item; // first; of the watch, while that reports the lease
	UT_hash_handle hh;
	struct lease_record record;
	int32_t shard;    // N of "PREFIX-N"; -1: another name
	int64_t seen_ms;  // boot clock: when this version was first observed
	bool was_renewed; // observed to change, or present in the first list: its holder is alive, or was recently
	uint64_t shown;   // number of the latest polled list requested when the lease was last reported
	char key[2 * LEASE_NAME_BYTES]; // of the item
};

struct lease_cache {
	const char *prefix; // prefix of the names of the shards' leases; not copied
	int64_t duration_ms;
	struct lease_cache_entry *items; // hash by name, in this order
	uint64_t n_requested;            // polled lists
	bool is_listed;                  // a list was completed; leases that are reported later are new
};

// prefix is not copied. duration_ms is the shortest time for which a holder that was observed may hold its lease.
void lease_cache_init(struct lease_cache *b, const char *prefix, int64_t duration_ms);
void lease_cache_done(struct lease_cache *b);

// Processes one polled list: call lease_cache_begin before the request, lease_cache_observe with each record, then
// lease_cache_end with the number that lease_cache_begin returned. lease_cache_end removes the leases that neither this
// list nor the watch has reported since. Several lists may be in progress.
uint64_t lease_cache_begin(struct lease_cache *b);
// Records a lease that a list or the watch reported at now_ms (boot clock). record is copied. Returns the entry. Ends
// the process without memory.
struct lease_cache_entry *lease_cache_observe(struct lease_cache *b, const struct lease_record *record, int64_t now_ms);
void lease_cache_end(struct lease_cache *b, uint64_t list);
// Removes a lease that was deleted.
void lease_cache_forget(struct lease_cache *b, struct lease_cache_entry *entry);

// Returns NULL when there is no such lease. The result is valid until the cache changes.
const struct lease_cache_entry *lease_cache_find_shard(const struct lease_cache *b, int32_t shard);
// Returns whether the lease has a holder that may not have noticed yet that it expired.
bool lease_cache_is_live(const struct lease_cache *b, const struct lease_cache_entry *entry, int64_t now_ms);

// ---- shards ----

enum shard_state {
	SHARD_AWAY,      // not held; its lease may be sought
	SHARD_TAKEN,     // its lease is held; whether all processes use one number of shards is not known yet
	SHARD_OWNED,     // on_gained was called
	SHARD_LEAVING,   // on_lost was called; the lease is kept until no write can be in flight any more
	SHARD_RELEASING, // its lease is being released
	SHARD_STATE__COUNT
};

struct shard {
	struct shards *owner;
	int32_t index;
	enum shard_state state;
	struct lease *lease;
	uint32_t term;        // how often it was owned
	uint64_t taken_after; // number of the last list that had started by then
	struct event leave;   // checks whether the lease can be released
	int64_t leave_by_ms;  // it is then, at the latest
	bool has_error;
};

struct shards {
	struct shards_options options;
	char namespace_name[LEASE_NAME_BYTES], lease_name[SHARDS_LEASE_NAME_BYTES], identity[LEASE_IDENTITY_BYTES];
	struct http_client *http;
	struct k8s_client *client;
	struct shard *shards; // n_shards of them
	struct shard member;  // the lease that shows that the process is running; without a lease: there is one shard
	bool list_has_error;
	struct lease_cache board;
	struct informer *informer;
	struct informer_item
	        watch;        // all leases of the group; not added when no watch is needed, or memory was exhausted
	struct event changed; // the watch reported something
	bool watch_has_error;
	bool is_listing;
	size_t n_members;
	struct event poll;
	struct clock_step_detector clock_step_detector;
	int64_t barred_until_ms; // no lease is sought before: the clock was set
	int64_t clock_step_ms;   // the clock was set by this, and all leases are about to be released; 0: it was not
	bool disagrees;          // the number of shards differs between processes; logged
	uint64_t gained, lost;   // shards, since the start
	char error[ERR_MSG_BYTES];
	uint32_t logged_kinds; // kinds of errors, one bit each, since all requests last succeeded
	struct event stopped;  // ends shards_stop()
	bool is_stopping, is_closing, is_member_gone;
};

int64_t shards_now_ms(const struct shards *s);
// Records whether one kind of request failed. Logs the first failure of each error kind, and the recovery. error NULL:
// the request works.
void shards_report(struct shards *s, bool *has_error, const struct err *error);

// shards_watch.c: keeps the lease cache up to date by a watch.
// Starts the watch, or stops it when it is not needed. The cache keeps its entries.
void shards_watch_keep(struct shards *s, bool is_needed);
// Stops the watch without a report. Call before the client is freed.
void shards_watch_free(struct shards *s);
// Reports the entries of the cache to the watch. Call when a polled list is complete.
void shards_watch_match(struct shards *s);
// Returns whether the watch is streaming and has received data lately: every process renews a lease in every retry
// period.
bool shards_watch_is_fresh(const struct shards *s);

#endif
