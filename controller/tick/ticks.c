// SPDX-License-Identifier: Apache-2.0
#include "controller/tick/ticks.h"

#include <assert.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash_table.h"
#include "base/timer.h"

struct tick_slot {
	struct ticker **members;
	size_t n, cap;
};

// The policies of one interval, which has n_slots * n_visits turns. Slot i has its tick at turn i * n_visits of each
// interval, and a look n_slots turns after that, and so on.
struct tick_group {
	struct ticks *ticks;
	int64_t interval_ms;
	struct event timer;
	struct tick_slot *slots;
	size_t n_slots;  // a power of two
	size_t n_visits; // a power of two: the tick and the looks
	size_t n;        // members of all slots
	int64_t start_mono_ms;
	int64_t turn; // the next one
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
	struct queue in_progress[2]; // [is_slow], in order of their start, without fast ones that write
	struct write_turns turns;
	struct event slow_timer;
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
	if (!oldest || event_pending(&s->slow_timer, EV_TIMEOUT, NULL))
		return;
	int64_t left_ms = oldest->since_mono_ms + TICKS_SLOW_MS - clock_mono_ms(s->options.clock);
	if (left_ms < 1)
		left_ms = s->in_progress[true].n < TICKS_SLOW_MAX ? 1 : TICKS_SLOW_MS;
	timer_start(&s->slow_timer, left_ms);
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
	ticks_run(arg);
}

// ---- one tick ----

// A tick has ended, or is about to write: only the time until then decides whether the next one starts as slow.
static void leave_place(struct ticks *s, struct ticker *t)
{
	take(&s->in_progress[t->is_slow], t);
	t->is_slow = clock_mono_ms(s->options.clock) - t->since_mono_ms >= TICKS_SLOW_MS;
}

// A tick that is due or in progress may decide otherwise, so its policy does not write.
static bool is_idle(const struct write_turn *turn)
{
	const struct ticker *t = (const void *)((uintptr_t)turn - offsetof(struct ticker, turn));
	return t->state == TICK_IDLE;
}

static void give_turns(struct ticks *s)
{
	struct write_turn *turn;
	while (!s->is_stopped && (turn = write_turns_next(&s->turns, is_idle))) {
		struct ticker *t = (void *)((uintptr_t)turn - offsetof(struct ticker, turn));
		t->state = TICK_IN_PROGRESS;
		s->options.write(s->options.arg, t);
	}
}

void ticks_run(struct ticks *s)
{
	if (s->is_starting || s->is_stopped)
		return; // called by a tick that ended at once; the loop below continues
	s->is_starting = true;
	move_slow_ticks(s);
	give_turns(s); // before a tick that starts now may take one
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
	give_turns(s);
	s->is_starting = false;
	set_slow_timer(s);
}

bool ticks_take_turn(struct ticks *s, struct ticker *t)
{
	assert(t->state == TICK_IN_PROGRESS);
	if (write_turn_is_taken(&t->turn))
		return true;
	if (!write_turns_request(&s->turns, &t->turn))
		return false;
	leave_place(s, t);
	if (s->due[false].n + s->due[true].n > 0)
		event_active(&s->slow_timer, EV_TIMEOUT, 0); // its place is free
	return true;
}

void ticks_ask(struct ticks *s, struct ticker *t, int64_t now_ms)
{
	if (t->state == TICK_IN_PROGRESS)
		return;
	t->now_ms = now_ms; // a queued tick becomes one of now
	if (t->state == TICK_DUE)
		return;
	t->state = TICK_DUE;
	t->due_mono_ms = clock_mono_ms(s->options.clock);
	push(&s->due[t->is_slow], t);
}

void ticks_end(struct ticks *s, struct ticker *t)
{
	assert(t->state == TICK_IN_PROGRESS);
	if (!write_turn_is_taken(&t->turn))
		leave_place(s, t);
	bool is_due = t->turn.state == WRITE_TURN_FOLLOWED;
	write_turns_note(&s->turns, &t->turn, WRITE_TURN_TICK_ENDS);
	t->state = TICK_IDLE;
	if (!is_due)
		return;
	int64_t due_mono_ms = t->due_mono_ms;
	ticks_ask(s, t, clock_wall_ms(s->options.clock));
	t->due_mono_ms = due_mono_ms;
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

// ---- slots ----

static size_t slot_of(uint32_t key, size_t n_slots)
{
	return (size_t)((uint64_t)key * n_slots >> 32); // doubling splits each slot in two, which stay neighbours
}

static int64_t n_turns(const struct tick_group *g)
{
	return (int64_t)(g->n_slots * g->n_visits);
}

static int64_t time_of(const struct tick_group *g, int64_t turn)
{
	return g->start_mono_ms + turn * g->interval_ms / n_turns(g);
}

static void set_timer(struct tick_group *g)
{
	int64_t left_ms = time_of(g, g->turn) - clock_mono_ms(g->ticks->options.clock);
	if (timer_start(&g->timer, left_ms > 1 ? left_ms : 1) < 0)
		abort(); // base/alloc.h
}

static void slot_put(struct tick_slot *slot, struct ticker *t)
{
	must_reserve(&slot->members, slot->n, &slot->cap, sizeof(struct ticker *), 4);
	t->index = slot->n;
	slot->members[slot->n++] = t;
}

static void free_slots(struct tick_slot *slots, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(slots[i].members);
	free(slots);
}

static size_t slots_wanted(const struct tick_group *g)
{
	size_t n = g->n_slots;
	while (g->n > TICKS_SLOT_FULL * n && g->interval_ms / (int64_t)(2 * n) >= TICKS_SLOT_MS_MIN)
		n *= 2;
	while (n > 1 && g->n < TICKS_SLOT_SPARSE * n)
		n /= 2;
	return n;
}

static size_t visits_wanted(const struct tick_group *g)
{
	int64_t n = 1;
	while (g->ticks->options.early_check && g->interval_ms / n > TICKS_EARLY_CHECK_MS)
		n *= 2;
	while (n > 1 && (int64_t)g->n * (n - 1) * 1000 > TICKS_EARLY_CHECKS_PER_S * g->interval_ms)
		n /= 2;
	return (size_t)n;
}

// Moves the members to n slots.
static void move_members(struct tick_group *g, size_t n)
{
	struct tick_slot *slots = must_alloc(calloc(n, sizeof *slots));
	for (size_t i = 0; i < g->n_slots; i++)
		for (size_t k = 0; k < g->slots[i].n; k++)
			slot_put(&slots[slot_of(g->slots[i].members[k]->key, n)], g->slots[i].members[k]);
	free_slots(g->slots, g->n_slots);
	g->slots = slots;
	g->n_slots = n;
}

// Adapts the slots and the looks to the number of members.
static void divide(struct tick_group *g)
{
	int64_t before = n_turns(g);
	size_t n_slots = slots_wanted(g);
	if (n_slots != g->n_slots)
		move_members(g, n_slots);
	g->n_visits = visits_wanted(g);
	int64_t now = n_turns(g);
	if (now == before)
		return;
	// The next turn keeps its time or is the first one that is not earlier, unless turns between now and then are
	// new.
	g->turn = (g->turn * now + before - 1) / before;
	while (time_of(g, g->turn - 1) > clock_mono_ms(g->ticks->options.clock))
		g->turn--;
	set_timer(g);
}

static void queue_member(struct tick_group *g, struct ticker *t, int64_t due_mono_ms, int64_t now_ms)
{
	struct ticks *s = g->ticks;
	bool was_new = t->is_new;
	t->is_new = false;
	if (t->turn.state == WRITE_TURN_TAKEN) {
		write_turns_note(&s->turns, &t->turn, WRITE_TURN_TICK_DUE);
		t->due_mono_ms = due_mono_ms;
		return;
	}
	if (t->state != TICK_IDLE) {
		if (due_mono_ms - t->due_mono_ms >= g->interval_ms)
			s->options.skipped(s->options.arg, t);
		ticks_ask(s, t, now_ms);
		return;
	}
	if (was_new && g->n_slots > 1 && due_mono_ms - t->due_mono_ms < g->interval_ms / 2)
		return;
	ticks_ask(s, t, now_ms);
	t->due_mono_ms = due_mono_ms;
}

static void visit(struct tick_group *g, int64_t turn, int64_t now_ms)
{
	const struct ticks_options *o = &g->ticks->options;
	size_t n = (size_t)n_turns(g), at = (size_t)(turn % n_turns(g));
	for (size_t i = 0; i < g->n_visits; i++) {
		size_t since = (at + n - i * g->n_slots) % n; // the turn of the slot's tick
		if (since % g->n_visits != 0)
			continue;
		const struct tick_slot *slot = &g->slots[since / g->n_visits];
		for (size_t k = 0; k < slot->n; k++)
			if (i == 0)
				queue_member(g, slot->members[k], time_of(g, turn), now_ms);
			else if (slot->members[k]->state == TICK_IDLE)
				o->early_check(o->arg, slot->members[k], now_ms);
	}
}

// Visits all slots whose time has come: each slot once, however late the loop is.
static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct tick_group *g = arg;
	struct ticks *s = g->ticks;
	if (s->options.before)
		s->options.before(s->options.arg);
	int64_t now_ms = clock_wall_ms(s->options.clock), mono_ms = clock_mono_ms(s->options.clock);
	bool is_round = false;
	for (int64_t left = n_turns(g); left > 0 && time_of(g, g->turn) <= mono_ms; left--, g->turn++) {
		visit(g, g->turn, now_ms);
		is_round = is_round || g->turn % n_turns(g) == 0;
	}
	while (time_of(g, g->turn) <= mono_ms) // a whole interval late
		g->turn += n_turns(g);
	set_timer(g);
	if (is_round && s->options.round)
		s->options.round(s->options.arg, now_ms);
	ticks_run(s); // may free this group
}

// ---- groups ----

static void free_group(struct ticks *s, struct tick_group *g)
{
	HASH_DEL(s->groups, g);
	event_del(&g->timer);
	free_slots(g->slots, g->n_slots);
	free(g);
}

static struct tick_group *group_for(struct ticks *s, int64_t interval_ms)
{
	struct tick_group *g = NULL;
	HASH_FIND(hh, s->groups, &interval_ms, sizeof interval_ms, g);
	if (g)
		return g;
	g = must_alloc(calloc(1, sizeof *g));
	g->ticks = s;
	g->interval_ms = interval_ms;
	g->start_mono_ms = clock_mono_ms(s->options.clock);
	g->n_slots = g->n_visits = 1;
	g->turn = 1; // an interval from now
	HASH_ADD(hh, s->groups, interval_ms, sizeof g->interval_ms, g);
	g->slots = must_alloc(calloc(1, sizeof *g->slots));
	evtimer_assign(&g->timer, s->options.loop, on_turn, g);
	set_timer(g);
	return g;
}

static void leave_group(struct ticks *s, struct ticker *t)
{
	struct tick_group *g = t->group;
	if (!g)
		return;
	struct tick_slot *slot = &g->slots[slot_of(t->key, g->n_slots)];
	slot->members[t->index] = slot->members[--slot->n];
	slot->members[t->index]->index = t->index;
	t->group = NULL;
	if (--g->n == 0)
		free_group(s, g);
	else
		divide(g);
}

void ticks_add(struct ticks *s, struct ticker *t, int64_t interval_ms, uint32_t key)
{
	if (t->group && t->group->interval_ms == interval_ms && t->key == key)
		return;
	if (!t->group && t->state == TICK_IDLE)
		t->due_mono_ms = clock_mono_ms(s->options.clock) - interval_ms; // it had no tick
	leave_group(s, t);
	struct tick_group *g = group_for(s, interval_ms);
	slot_put(&g->slots[slot_of(key, g->n_slots)], t);
	t->group = g;
	t->key = key;
	t->is_new = true;
	g->n++;
	divide(g);
}

void ticks_remove(struct ticks *s, struct ticker *t)
{
	leave_group(s, t);
	write_turns_note(&s->turns, &t->turn, WRITE_TURN_REMOVES);
	if (t->state != TICK_DUE)
		return;
	take(&s->due[t->is_slow], t);
	t->state = TICK_IDLE;
}

// ---- life ----

struct ticks *ticks_new(const struct ticks_options *options)
{
	struct ticks *s = must_alloc(calloc(1, sizeof *s));
	s->options = *options;
	s->turns.max = TICKS_WRITES_MAX;
	evtimer_assign(&s->slow_timer, options->loop, on_slow, s);
	return s;
}

void ticks_free(struct ticks *s)
{
	if (!s)
		return;
	assert(s->in_progress[false].n + s->in_progress[true].n + s->turns.n_taken == 0);
	struct tick_group *g, *next;
	HASH_ITER(hh, s->groups, g, next)
	{
		for (size_t i = 0; i < g->n_slots; i++)
			for (size_t k = 0; k < g->slots[i].n; k++)
				g->slots[i].members[k]->group = NULL;
		free_group(s, g);
	}
	event_del(&s->slow_timer);
	free(s);
}

void ticks_get_stats(const struct ticks *s, struct ticks_stats *ret_stats)
{
	*ret_stats = (struct ticks_stats){
	        .due = s->due[false].n + s->due[true].n,
	        .in_progress = s->in_progress[false].n + s->in_progress[true].n + s->turns.n_taken,
	        .slow = s->in_progress[true].n,
	        .awaiting = s->turns.n_queued,
	};
}
