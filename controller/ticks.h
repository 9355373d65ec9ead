// SPDX-License-Identifier: Apache-2.0
// When each policy has its tick: all of one interval at the same moment, so that equal queries are asked once, in turn
// while others are under way, and never so that those that hang stop those that do not.
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

// Ticks under way at once. Enough to keep every connection busy through each step of a tick; more would only wait in
// the HTTP clients' queues, and take memory there.
#define TICKS_MAX 32
// One that takes longer makes room for others, up to TICKS_SLOW_MAX of them; and the next ones of its policy wait for
// each other, TICKS_MAX at once, until one was fast again.
#define TICKS_SLOW_MS  1000
#define TICKS_SLOW_MAX 512

enum tick_state { TICK_IDLE, TICK_DUE, TICK_UNDER_WAY, TICK_STATE__COUNT };

// One who has ticks; zero it once, and leave it to ticks_* then.
struct ticker {
	struct tick_group *group; // NULL: not added
	size_t index;             // there
	enum tick_state state;
	bool is_slow;          // the last tick was, or the one under way is
	int64_t now_ms;        // TICK_DUE: the moment it is asked for
	int64_t since_mono_ms; // TICK_UNDER_WAY
	struct ticker *previous, *next;
};

struct ticks_options {
	struct event_base *loop;   // not owned
	const struct clock *clock; // not owned
	// Begin a tick; ticks_end() when it has ended, maybe before this returns.
	void (*start)(void *arg, struct ticker *t, int64_t now_ms);
	// An interval has passed and the tick of the one before was not over.
	void (*skipped)(void *arg, struct ticker *t);
	// After the tickers of one interval were asked for their tick.
	void (*round)(void *arg, int64_t now_ms);
	void *arg;
};

struct ticks *ticks_new(const struct ticks_options *options, struct err *e);
// None may be under way. NULL is fine.
void ticks_free(struct ticks *s);

// From now on it has a tick every interval_ms, with all others of that interval; the first one when the interval has
// passed for these (or ticks_ask). Added again: with the new interval. -1 when memory ends.
int ticks_add(struct ticks *s, struct ticker *t, int64_t interval_ms, struct err *e);
// No more ticks. One that is under way still ends by ticks_end(), and t must live until then.
void ticks_remove(struct ticks *s, struct ticker *t);
// A tick beside the interval, as of now_ms. Nothing when one is under way; one that waits becomes one of now_ms.
// Starts when ticks_run() is called, or the next interval passes.
void ticks_ask(struct ticks *s, struct ticker *t, int64_t now_ms);
// Starts what waits, as far as there is room.
void ticks_run(struct ticks *s);
void ticks_end(struct ticks *s, struct ticker *t);
// From now on no tick is started.
void ticks_stop(struct ticks *s);

struct ticks_stats {
	size_t due, under_way;
	size_t slow; // of those under way
};
void ticks_get_stats(const struct ticks *s, struct ticks_stats *ret_stats);

#endif
