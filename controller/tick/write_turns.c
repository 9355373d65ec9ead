// SPDX-License-Identifier: Apache-2.0
// Turns to write: which of the queued policies writes next.
#include "controller/tick/ticks.h"

#include <utlist.h>

// clang-format off
static const enum write_turn_state next_state[WRITE_TURN_STATE__COUNT][WRITE_TURN_EVENT__COUNT] = {
	//                        refuses               comes                tick due               tick ends          removes
	[WRITE_TURN_NONE]      = {WRITE_TURN_REQUESTED, WRITE_TURN_TAKEN,    WRITE_TURN_NONE,       WRITE_TURN_NONE,   WRITE_TURN_NONE},
	[WRITE_TURN_REQUESTED] = {WRITE_TURN_REQUESTED, WRITE_TURN_TAKEN,    WRITE_TURN_REQUESTED,  WRITE_TURN_QUEUED, WRITE_TURN_NONE},
	[WRITE_TURN_QUEUED]    = {WRITE_TURN_REQUESTED, WRITE_TURN_TAKEN,    WRITE_TURN_QUEUED,     WRITE_TURN_NONE,   WRITE_TURN_NONE},
	[WRITE_TURN_TAKEN]     = {WRITE_TURN_TAKEN,     WRITE_TURN_TAKEN,    WRITE_TURN_FOLLOWED,   WRITE_TURN_NONE,   WRITE_TURN_TAKEN},
	[WRITE_TURN_FOLLOWED]  = {WRITE_TURN_FOLLOWED,  WRITE_TURN_FOLLOWED, WRITE_TURN_FOLLOWED,   WRITE_TURN_NONE,   WRITE_TURN_TAKEN},
};
// clang-format on

static bool is_queued(enum write_turn_state state)
{
	return state == WRITE_TURN_REQUESTED || state == WRITE_TURN_QUEUED;
}

bool write_turn_is_taken(const struct write_turn *t)
{
	return t->state == WRITE_TURN_TAKEN || t->state == WRITE_TURN_FOLLOWED;
}

void write_turns_note(struct write_turns *w, struct write_turn *t, enum write_turn_event event)
{
	enum write_turn_state before = t->state;
	w->n_taken -= write_turn_is_taken(t);
	t->state = next_state[before][event];
	w->n_taken += write_turn_is_taken(t);
	if (is_queued(before) && !is_queued(t->state)) {
		DL_DELETE2(w->queue, t, previous, next);
		w->n_queued--;
	} else if (!is_queued(before) && is_queued(t->state)) {
		DL_APPEND2(w->queue, t, previous, next);
		w->n_queued++;
	}
}

bool write_turns_request(struct write_turns *w, struct write_turn *t)
{
	write_turns_note(w, t, w->n_taken < w->max ? WRITE_TURN_COMES : WRITE_TURN_REFUSES);
	return write_turn_is_taken(t);
}

struct write_turn *write_turns_next(struct write_turns *w, bool (*is_ready)(const struct write_turn *t))
{
	struct write_turn *t = w->n_taken < w->max ? w->queue : NULL;
	for (int i = 1; t && !is_ready(t); i++)
		t = i < WRITE_TURNS_LOOKED_AT ? t->next : NULL;
	if (t)
		write_turns_note(w, t, WRITE_TURN_COMES);
	return t;
}
