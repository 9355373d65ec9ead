// SPDX-License-Identifier: Apache-2.0
// What the files of the shards share; nobody else includes this.
#ifndef GPUSCALE_CONTROLLER_SHARDS_PRIVATE_H
#define GPUSCALE_CONTROLLER_SHARDS_PRIVATE_H

#include "base/err.h"
#include "controller/clock_guard.h"
#include "controller/lease_board.h"
#include "controller/shards.h"
#include "k8s/lease.h"

struct event;
struct http_client;

#define SHARDS_LEASE_NAME_BYTES 51 // with "-member-" and a hash it still is a label's value

enum shard_state {
	SHARD_AWAY,      // not ours; its lease may be sought
	SHARD_TAKEN,     // its lease is ours; whether all go by one number of shards is still to be seen
	SHARD_OWNED,     // on_gained was called
	SHARD_LEAVING,   // on_lost was called; the lease is kept until nothing can be under way any more
	SHARD_RELEASING, // the server is being told
	SHARD_STATE__COUNT
};

struct shard {
	struct shards *owner;
	int32_t index;
	enum shard_state state;
	struct lease *lease;
	uint64_t taken_after; // the list that had begun last by then
	struct event *leave;  // when a shard that is left is released at the latest
	bool has_error;
};

struct shards {
	struct shards_options options;
	char namespace_name[LEASE_NAME_BYTES], lease_name[SHARDS_LEASE_NAME_BYTES], identity[LEASE_IDENTITY_BYTES];
	struct http_client *http;
	struct k8s_client *client;
	struct shard *shards; // n_shards of them
	struct lease *member; // NULL: there is one shard
	bool member_has_error, list_has_error;
	struct lease_board board;
	struct k8s_watch *watch; // of the same leases; NULL: not needed, or it could not be begun
	struct event *changed;   // it brought something
	bool watch_has_error;
	bool is_listing;
	uint64_t list_number; // of the list that began last
	size_t n_members;
	struct event *poll;
	struct clock_guard clock_guard;
	int64_t barred_until_ms; // nothing is sought before: the clock was set
	int64_t clock_step_ms;   // it was set by so much, and what is owned is about to be given up; 0: it was not
	bool said_disagree;
	uint64_t term, gained, lost, clock_steps;
	char error[ERR_MSG_BYTES];
	struct event *stopped; // runs done
	bool is_stopping, is_closing, is_member_gone;
	void (*done)(void *arg);
	void *done_arg;
};

int64_t shards_now_ms(const struct shards *s);
// Sets the poll timer.
void shards_poll_in(struct shards *s, int64_t wait_ms);
// Gives one up, if we have it.
void shards_leave(struct shards *s, struct shard *shard, const char *why);
// on_gained.
void shards_own(struct shards *s, struct shard *shard);
// error NULL: this one works (again).
void shards_report(struct shards *s, bool *has_error, const struct err *error);

// shards_poll.c: what the timer does: looks at the clock, lists the leases when it must, and decides what to seek and
// what to give up.
void shards_on_poll(struct shards *s);
// The same, for what the watch brought.
void shards_on_changed(struct shards *s);

// shards_watch.c: the board kept up to date by a watch.
// Begins it, or ends it when it is not needed.
void shards_watch_keep(struct shards *s, bool is_needed);
// It brings what changes, and did so lately: every process renews something every retry period.
bool shards_watch_is_fresh(const struct shards *s);

#endif
