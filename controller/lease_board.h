// SPDX-License-Identifier: Apache-2.0
// What lists of the leases of one group have shown: which ones there are, and since when each has stood unchanged here.
#ifndef GPUSCALE_CONTROLLER_LEASE_BOARD_H
#define GPUSCALE_CONTROLLER_LEASE_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/lease_record.h"

struct board_entry {
	struct lease_record record;
	int32_t shard;       // of "PREFIX-N"; -1: another name
	int64_t seen_ms;     // boot clock: when this version was first seen
	bool was_renewed;    // seen to change, or there in the first list: its holder lives, or did not long ago
	bool is_in_this_one; // list
};

struct lease_board {
	const char *prefix; // of the shards' names; not copied
	int64_t duration_ms;
	struct board_entry *items; // sorted by name
	size_t n, room;
	uint64_t n_lists; // ended
};

void lease_board_init(struct lease_board *b, const char *prefix, int64_t duration_ms);
void lease_board_done(struct lease_board *b);

// One list: begin, each of its records, end. What it did not have is forgotten at the end. -1: out of memory.
void lease_board_begin(struct lease_board *b);
int lease_board_saw(struct lease_board *b, const struct lease_record *record, int64_t now_ms);
void lease_board_end(struct lease_board *b);
// One was deleted.
void lease_board_forget(struct lease_board *b, const char *name);

// NULL: there is none.
const struct board_entry *lease_board_find_shard(const struct lease_board *b, int32_t shard);
// Somebody holds it and may still believe so.
bool lease_board_is_live(const struct lease_board *b, const struct board_entry *entry, int64_t now_ms);

#endif
