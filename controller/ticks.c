// SPDX-License-Identifier: Apache-2.0
#include "controller/ticks.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>
#include <uthash.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/timer.h"

struct tick_group {
	struct ticks *ticks;
	int64_t interval_ms;
	struct event *timer;
	struct ticker **members;
	size_t n, cap;
	UT_hash_handle hh;
};

struct queue {
	struct ticker *head;
	size_t n;
};

struct ticks {
	struct ticks_options options;
	struct tick_group *groups;
	struct queue due[2];         // [is_slow]
	struct queue in_progress[2]; // [is_slow], in order of their start
	struct event *slow_timer;
	bool is_starting, is_stopped;
};

static void push(struct queue *q, struct ticker *t)
{
	DL_APPEND2(q->head, t, previous, next);
	q->n++;
}

static void take(struct queue *q, struct ticker *t)
{
	DL_DELETE2(q->head, t, previous, next);
	q->n--;
}

// ---- slow ticks ----

// Sets the timer to the moment when the oldest fast tick becomes a slow one.
static void set_slow_timer(struct ticks *s)
{
	const struct ticker *oldest = s->in_progress[false].head;
	if (!oldest || event_pending(s->slow_timer, EV_TIMEOUT, NULL))
		return;
	int64_t left_ms = oldest->since_mono_ms + TICKS_SLOW_MS - clock_mono_ms(s->options.clock);
	if (left_ms < 1)
		left_ms = s->in_progress[true].n < TICKS_SLOW_MAX ? 1 : TICKS_SLOW_MS;
	timer_start(s->slow_timer, left_ms);
}

static void move_slow_ticks(struct ticks *s)
{
	int64_t before_ms = clock_mono_ms(s->options.clock) - TICKS_SLOW_MS;
	while (s->in_progress[false].head && s->in_progress[false].head->since_mono_ms <= before_ms &&
	       s->in_progress[true].n < TICKS_SLOW_MAX) {
		struct ticker *t = s->in_progress[false].head;
		take(&s->in_progress[false], t);
		t->is_slow = true;
		push(&s->in_progress[true], t);
	}
}

static void on_slow(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	ticks_run(arg);
}

// ---- one tick ----

void ticks_run(struct ticks *s)
{
	if (s->is_starting || s->is_stopped)
		return; // called by a tick that ended at once; the loop below continues
	s->is_starting = true;
	move_slow_ticks(s);
	for (int slow = 0; slow < 2; slow++) {
		while (s->due[slow].head && s->in_progress[slow].n < TICKS_MAX && !s->is_stopped) {
			struct ticker *t = s->due[slow].head;
			take(&s->due[slow], t);
			t->state = TICK_IN_PROGRESS;
			t->since_mono_ms = clock_mono_ms(s->options.clock);
			push(&s->in_progress[slow], t);
			s->options.start(s->options.arg, t, t->now_ms);
		}
	}
	s->is_starting = false;
	set_slow_timer(s);
}

void ticks_ask(struct ticks *s, struct ticker *t, int64_t now_ms)
{
	if (t->state == TICK_IN_PROGRESS)
		return;
	t->now_ms = now_ms; // a queued tick becomes one of now
	if (t->state == TICK_DUE)
		return;
	t->state = TICK_DUE;
	push(&s->due[t->is_slow], t);
}

void ticks_end(struct ticks *s, struct ticker *t)
{
	assert(t->state == TICK_IN_PROGRESS);
	take(&s->in_progress[t->is_slow], t);
	t->state = TICK_IDLE;
	t->is_slow = clock_mono_ms(s->options.clock) - t->since_mono_ms >= TICKS_SLOW_MS;
}

void ticks_clock_was_set(struct ticks *s, int64_t step_ms)
{
	struct ticker *t;
	for (int slow = 0; slow < 2; slow++)
		DL_FOREACH2(s->due[slow].head, t, next)
	t->now_ms += step_ms;
}

void ticks_stop(struct ticks *s)
{
	s->is_stopped = true;
}

// ---- groups ----

static void on_interval(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct tick_group *g = arg;
	struct ticks *s = g->ticks;
	if (s->options.before)
		s->options.before(s->options.arg);
	int64_t now_ms = clock_wall_ms(s->options.clock);
	for (size_t i = 0; i < g->n; i++) {
		if (g->members[i]->state != TICK_IDLE)
			s->options.skipped(s->options.arg, g->members[i]);
		ticks_ask(s, g->members[i], now_ms);
	}
	if (s->options.round)
		s->options.round(s->options.arg, now_ms);
	ticks_run(s); // may free this group
}

static void free_group(struct ticks *s, struct tick_group *g)
{
	HASH_DEL(s->groups, g);
	if (g->timer)
		event_free(g->timer);
	free(g->members);
	free(g);
}

static struct tick_group *group_for(struct ticks *s, int64_t interval_ms, struct err *e)
{
	struct tick_group *g = NULL;
	HASH_FIND(hh, s->groups, &interval_ms, sizeof interval_ms, g);
	if (g)
		return g;
	g = calloc(1, sizeof *g);
	if (!g) {
		err_set(e, ERR_INTERNAL, "out of memory for a timer");
		return NULL;
	}
	g->ticks = s;
	g->interval_ms = interval_ms;
	HASH_ADD(hh, s->groups, interval_ms, sizeof g->interval_ms, g);
	g->timer = event_new(s->options.loop, -1, EV_PERSIST, on_interval, g);
	if (g->timer && timer_start(g->timer, interval_ms) == 0)
		return g;
	free_group(s, g);
	err_set(e, ERR_INTERNAL, "cannot create a timer");
	return NULL;
}

static void leave_group(struct ticks *s, struct ticker *t)
{
	struct tick_group *g = t->group;
	if (!g)
		return;
	g->members[t->index] = g->members[--g->n];
	g->members[t->index]->index = t->index;
	t->group = NULL;
	if (g->n == 0)
		free_group(s, g);
}

int ticks_add(struct ticks *s, struct ticker *t, int64_t interval_ms, struct err *e)
{
	if (t->group && t->group->interval_ms == interval_ms)
		return 0;
	leave_group(s, t);
	struct tick_group *g = group_for(s, interval_ms, e);
	if (!g)
		return -1;
	if (g->n == g->cap) {
		size_t cap = g->cap ? g->cap * 2 : 4;
		struct ticker **members = realloc(g->members, cap * sizeof(struct ticker *));
		if (!members) {
			if (g->n == 0)
				free_group(s, g);
			return err_set(e, ERR_INTERNAL, "out of memory for a timer");
		}
		g->members = members;
		g->cap = cap;
	}
	t->group = g;
	t->index = g->n;
	g->members[g->n++] = t;
	return 0;
}

void ticks_remove(struct ticks *s, struct ticker *t)
{
	leave_group(s, t);
	if (t->state != TICK_DUE)
		return;
	take(&s->due[t->is_slow], t);
	t->state = TICK_IDLE;
}

// ---- life ----

struct ticks *ticks_new(const struct ticks_options *options, struct err *e)
{
	struct ticks *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	s->options = *options;
	s->slow_timer = event_new(options->loop, -1, 0, on_slow, s);
	if (s->slow_timer)
		return s;
	free(s);
	err_set(e, ERR_INTERNAL, "cannot create a timer");
	return NULL;
}

void ticks_free(struct ticks *s)
{
	if (!s)
		return;
	assert(s->in_progress[false].n + s->in_progress[true].n == 0);
	struct tick_group *g, *next;
	HASH_ITER(hh, s->groups, g, next)
	{
		for (size_t i = 0; i < g->n; i++)
			g->members[i]->group = NULL;
		free_group(s, g);
	}
	event_free(s->slow_timer);
	free(s);
}

void ticks_get_stats(const struct ticks *s, struct ticks_stats *ret_stats)
{
	*ret_stats = (struct ticks_stats){
	        .due = s->due[false].n + s->due[true].n,
	        .in_progress = s->in_progress[false].n + s->in_progress[true].n,
	        .slow = s->in_progress[true].n,
	};
}
