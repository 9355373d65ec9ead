// SPDX-License-Identifier: Apache-2.0
// Schedules the ticks of all policies. Those of one interval tick as of the same moment, so that equal queries are sent
// once. The number of ticks in progress is limited, and ticks that hang do not delay the others.
#ifndef GPUSCALE_CONTROLLER_TICKS_H
#define GPUSCALE_CONTROLLER_TICKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;
struct err;
struct event_base;
struct tick_group;
struct ticks;

// Ticks in progress at once. Enough to keep every connection busy through each step of a tick; more would only wait in
// the HTTP clients' queues, and take memory there.
#define TICKS_MAX 32
// A tick that takes longer counts as slow and makes room for others, up to TICKS_SLOW_MAX slow ticks. The next tick of
// its policy starts as slow, of which TICKS_MAX start at once, until one is fast again.
#define TICKS_SLOW_MS  1000
#define TICKS_SLOW_MAX 512

enum tick_state { TICK_IDLE, TICK_DUE, TICK_IN_PROGRESS, TICK_STATE__COUNT };

// The ticks of one policy. Zero it once; then only ticks_* change it.
struct ticker {
	struct tick_group *group; // NULL: not added
	size_t index;             // there
	enum tick_state state;
	bool is_slow;          // the last tick, or the one in progress
	int64_t now_ms;        // TICK_DUE: the moment of the tick
	int64_t since_mono_ms; // TICK_IN_PROGRESS
	struct ticker *previous, *next;
};

struct ticks_options {
	struct event_base *loop;   // not owned
	const struct clock *clock; // not owned
	// Called when an interval has passed, before the time is read. May be NULL.
	void (*before)(void *arg);
	// Starts a tick. Call ticks_end() when it has ended, also from within this callback.
	void (*start)(void *arg, struct ticker *t, int64_t now_ms);
	// Called when an interval has passed and the previous tick has not ended.
	void (*skipped)(void *arg, struct ticker *t);
	// Called after all ticks of one interval were queued. May be NULL.
	void (*round)(void *arg, int64_t now_ms);
	void *arg;
};

struct ticks *ticks_new(const struct ticks_options *options, struct err *e);
// No tick may be in progress. NULL is fine.
void ticks_free(struct ticks *s);

// Lets t tick every interval_ms, together with all others of that interval, starting with their next one. Replaces the
// interval of a ticker that was added before. Returns -1 when memory is exhausted.
int ticks_add(struct ticks *s, struct ticker *t, int64_t interval_ms, struct err *e);
// Stops the ticks of t. A tick in progress still ends with ticks_end(), and t must live until then.
void ticks_remove(struct ticks *s, struct ticker *t);
// Queues a tick as of now_ms, beside the interval. Does nothing while a tick is in progress; a queued tick becomes one
// of now_ms. It starts at ticks_run(), or when the next interval passes.
void ticks_ask(struct ticks *s, struct ticker *t, int64_t now_ms);
// Starts the queued ticks, up to the limits.
void ticks_run(struct ticks *s);
void ticks_end(struct ticks *s, struct ticker *t);
// Reports that the wall clock was set by step_ms. Scheduled ticks keep their moment, expressed in the new clock.
void ticks_clock_was_set(struct ticks *s, int64_t step_ms);
// Starts no tick from now on.
void ticks_stop(struct ticks *s);

struct ticks_stats {
	size_t due, in_progress;
	size_t slow; // of those in progress
};
void ticks_get_stats(const struct ticks *s, struct ticks_stats *ret_stats);

#endif
