// SPDX-License-Identifier: Apache-2.0
// Turns to write: a limited number of policies write at once, and the others queue (decision 41). Only the bookkeeping,
// without I/O or a clock: ticks.c starts what has its turn.
#ifndef GPUSCALE_CONTROLLER_TICK_WRITE_TURNS_H
#define GPUSCALE_CONTROLLER_TICK_WRITE_TURNS_H

#include <stdbool.h>
#include <stddef.h>

enum write_turn_state {
	WRITE_TURN_NONE,
	WRITE_TURN_REQUESTED, // queued, by the tick in progress
	WRITE_TURN_QUEUED,    // by the last tick; the next one cancels it or requests it again
	WRITE_TURN_TAKEN,     // the policy writes
	WRITE_TURN_FOLLOWED,  // the same, and a tick that came due meanwhile follows
	WRITE_TURN_STATE__COUNT
};

enum write_turn_event {
	WRITE_TURN_REFUSES, // a request while all turns are taken
	WRITE_TURN_COMES,
	WRITE_TURN_TICK_DUE,
	WRITE_TURN_TICK_ENDS, // or the write
	WRITE_TURN_REMOVES,   // the policy has no more ticks
	WRITE_TURN_EVENT__COUNT
};

// The turn of one policy. Zero it once; then only write_turns_* change it.
struct write_turn {
	enum write_turn_state state;
	struct write_turn *previous, *next;
};

struct write_turns {
	size_t max; // set by the owner: turns that may be taken at once
	struct write_turn *queue;
	size_t n_queued, n_taken;
};

// Requests the turn for the tick in progress of its policy. Returns whether it is taken; else it is queued until a tick
// of the policy ends without a request.
bool write_turns_request(struct write_turns *w, struct write_turn *t);
// Takes the first queued turn for which is_ready() returns true, of the first WRITE_TURNS_LOOKED_AT. Returns NULL when
// there is none, or all turns are taken.
struct write_turn *write_turns_next(struct write_turns *w, bool (*is_ready)(const struct write_turn *t));
#define WRITE_TURNS_LOOKED_AT 256
// Moves the turn to the state that follows the event.
void write_turns_note(struct write_turns *w, struct write_turn *t, enum write_turn_event event);
bool write_turn_is_taken(const struct write_turn *t);

#endif
