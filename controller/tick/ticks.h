// SPDX-License-Identifier: Apache-2.0
// Schedules the ticks of all policies. The policies of an interval are divided among slots, which are spread evenly
// over it; those of a slot tick as of the same moment, so that equal queries are sent once, and others are combined. A
// few policies share one slot. The number of ticks in progress is limited, and ticks that hang do not delay the others.
// A tick that writes needs a turn, and ends without one when too many others write; the policy keeps
// ticking while its decision waits to be written.
#ifndef GPUSCALE_CONTROLLER_TICK_TICKS_H
#define GPUSCALE_CONTROLLER_TICK_TICKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;
struct event_base;
struct tick_group;
struct ticks;

// Ticks in progress at once, up to the decision; and those that write. Enough to keep every connection busy through
// each step of a tick; more would only wait in the HTTP clients' queues, and take memory there.
#define TICKS_MAX        32
#define TICKS_WRITES_MAX 32
// A tick that takes longer to decide counts as slow and makes room for others, up to TICKS_SLOW_MAX slow ticks. The
// next tick of its policy starts as slow, of which TICKS_MAX start at once, until one is fast again. Writes all go to
// the same server, so one that hangs keeps its place.
#define TICKS_SLOW_MS  1000
#define TICKS_SLOW_MAX 512

// The slots of an interval: a power of two. They double when they have more policies than TICKS_SLOT_FULL on average,
// as long as they stay TICKS_SLOT_MS_MIN apart, and halve below TICKS_SLOT_SPARSE. Requests combine up to 16 queries
// (promql/similar.h), so a slot of fewer policies would cost more requests.
#define TICKS_SLOT_FULL   64
#define TICKS_SLOT_SPARSE 16
#define TICKS_SLOT_MS_MIN 50
// Between two ticks, the policies of a slot have looks at their signals, TICKS_EARLY_CHECK_MS apart at most. If all
// policies of an interval together would then have more than TICKS_EARLY_CHECKS_PER_S looks, the number is halved until
// it fits, down to none.
#define TICKS_EARLY_CHECK_MS     1000
#define TICKS_EARLY_CHECKS_PER_S 1000

// ---- turns to write (write_turns.c) ----
// A limited number of policies write at once, and the others queue (decision 41). Only the bookkeeping, without I/O or
// a clock: ticks.c starts what has its turn.

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

// ---- ticks ----

enum tick_state { TICK_IDLE, TICK_DUE, TICK_IN_PROGRESS, TICK_STATE__COUNT };

// The ticks of one policy. Zero it once; then only ticks_* change it.
struct ticker {
	struct tick_group *group; // NULL: not added
	uint32_t key;             // decides the slot
	size_t index;             // in that slot
	enum tick_state state;
	struct write_turn turn;
	bool is_new;           // no slot has come since it was added
	bool is_slow;          // the last tick until it decided, or the one in progress
	int64_t now_ms;        // TICK_DUE: the moment of the tick
	int64_t due_mono_ms;   // when the last tick was due
	int64_t since_mono_ms; // TICK_IN_PROGRESS: when it started
	struct ticker *previous, *next;
};

struct ticks_options {
	struct event_base *loop;   // not owned
	const struct clock *clock; // not owned
	// Called when the time of a slot has come, before the time is read. May be NULL.
	void (*before)(void *arg);
	// Starts a tick. Call ticks_end() when it has ended, also from within this callback.
	void (*start)(void *arg, struct ticker *t, int64_t now_ms);
	// Writes what the last tick decided, whose turn has come: it ended after ticks_take_turn() returned false. Call
	// ticks_end() when the write has ended, also from within this callback.
	void (*write)(void *arg, struct ticker *t);
	// Called between two ticks, for a ticker whose tick is neither due nor in progress. NULL: there are no looks.
	void (*early_check)(void *arg, struct ticker *t, int64_t now_ms);
	// Called when a tick is due and an earlier one, due at least an interval ago, has not ended.
	void (*skipped)(void *arg, struct ticker *t);
	// Called once per interval, after the ticks of its first slot were queued. May be NULL.
	void (*round)(void *arg, int64_t now_ms);
	void *arg;
};

struct ticks *ticks_new(const struct ticks_options *options);
// No tick may be in progress. NULL is fine.
void ticks_free(struct ticks *s);

// Lets t tick every interval_ms, starting with the next time of its slot. Tickers with equal keys share a slot; others
// are spread by their keys, which must be evenly distributed. Replaces the interval and the key of a ticker that was
// added before. If there are several slots and t had a tick less than half an interval before the first time of its
// slot, its ticks start an interval later.
void ticks_add(struct ticks *s, struct ticker *t, int64_t interval_ms, uint32_t key);
// Stops the ticks of t. A tick in progress still ends with ticks_end(), and t must live until then.
void ticks_remove(struct ticks *s, struct ticker *t);
// Queues a tick as of now_ms, beside the interval. Does nothing while a tick is in progress; a queued tick becomes one
// of now_ms. It starts at ticks_run(), or when the next slot has its time.
void ticks_ask(struct ticks *s, struct ticker *t, int64_t now_ms);
// Starts the queued ticks, up to the limits.
void ticks_run(struct ticks *s);
// Asks for the turn to write, for a tick in progress. Returns false when none is free: then end the tick, and `write`
// is called in turn, unless a later tick of the policy ends without asking.
bool ticks_take_turn(struct ticks *s, struct ticker *t);
void ticks_end(struct ticks *s, struct ticker *t);
// Reports that the wall clock was set by step_ms. Scheduled ticks keep their moment, expressed in the new clock.
void ticks_clock_was_set(struct ticks *s, int64_t step_ms);
// Starts no tick from now on.
void ticks_stop(struct ticks *s);

struct ticks_stats {
	size_t due, in_progress;
	size_t slow;     // of those in progress
	size_t awaiting; // tickers that wait for the turn to write
};
void ticks_get_stats(const struct ticks *s, struct ticks_stats *ret_stats);

#endif
