// SPDX-License-Identifier: Apache-2.0
// What a tick of one policy reports to its pool, and what the pool grants. Every function accepts a seat of NULL: the
// policy is in no pool.
#ifndef GPUSCALE_CONTROLLER_POOL_POOL_MEMBERSHIP_H
#define GPUSCALE_CONTROLLER_POOL_POOL_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct decision;
struct err;
struct policy;
struct pool_membership;

#define POOL_TEXT_BYTES_MAX 4096

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

#endif
