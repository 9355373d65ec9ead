// SPDX-License-Identifier: Apache-2.0
// Goal: a turn to write moves between its states as the table says, the queue and the number of turns taken follow, and
// turns come in order to those that are ready.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/tick/ticks.h"

#define MANY (WRITE_TURNS_LOOKED_AT + 8)

static bool is_queued(const struct write_turn *t)
{
	return t->state == WRITE_TURN_REQUESTED || t->state == WRITE_TURN_QUEUED;
}

static bool is_ready(const struct write_turn *t)
{
	return t->state == WRITE_TURN_QUEUED; // its tick has ended
}

// Brings a fresh turn to the state.
static void bring(struct write_turns *w, struct write_turn *t, enum write_turn_state to)
{
	static const enum write_turn_event paths[WRITE_TURN_STATE__COUNT][3] = {
	        [WRITE_TURN_NONE] = {WRITE_TURN_EVENT__COUNT},
	        [WRITE_TURN_REQUESTED] = {WRITE_TURN_REFUSES, WRITE_TURN_EVENT__COUNT},
	        [WRITE_TURN_QUEUED] = {WRITE_TURN_REFUSES, WRITE_TURN_TICK_ENDS, WRITE_TURN_EVENT__COUNT},
	        [WRITE_TURN_TAKEN] = {WRITE_TURN_COMES, WRITE_TURN_EVENT__COUNT},
	        [WRITE_TURN_FOLLOWED] = {WRITE_TURN_COMES, WRITE_TURN_TICK_DUE, WRITE_TURN_EVENT__COUNT},
	};
	for (int i = 0; paths[to][i] != WRITE_TURN_EVENT__COUNT; i++)
		write_turns_note(w, t, paths[to][i]);
	assert_int_equal(t->state, to);
}

static void every_event_leads_to_the_state_of_the_table(void **state)
{
	static const struct {
		enum write_turn_state before;
		enum write_turn_event event;
		enum write_turn_state after;
	} rows[] = {
	        {WRITE_TURN_NONE, WRITE_TURN_REFUSES, WRITE_TURN_REQUESTED},
	        {WRITE_TURN_NONE, WRITE_TURN_COMES, WRITE_TURN_TAKEN},
	        {WRITE_TURN_NONE, WRITE_TURN_TICK_DUE, WRITE_TURN_NONE},
	        {WRITE_TURN_NONE, WRITE_TURN_TICK_ENDS, WRITE_TURN_NONE}, // it wrote nothing
	        {WRITE_TURN_NONE, WRITE_TURN_REMOVES, WRITE_TURN_NONE},
	        {WRITE_TURN_REQUESTED, WRITE_TURN_REFUSES, WRITE_TURN_REQUESTED},
	        {WRITE_TURN_REQUESTED, WRITE_TURN_COMES, WRITE_TURN_TAKEN},
	        {WRITE_TURN_REQUESTED, WRITE_TURN_TICK_DUE, WRITE_TURN_REQUESTED},
	        {WRITE_TURN_REQUESTED, WRITE_TURN_TICK_ENDS, WRITE_TURN_QUEUED},
	        {WRITE_TURN_REQUESTED, WRITE_TURN_REMOVES, WRITE_TURN_NONE},
	        {WRITE_TURN_QUEUED, WRITE_TURN_REFUSES, WRITE_TURN_REQUESTED},
	        {WRITE_TURN_QUEUED, WRITE_TURN_COMES, WRITE_TURN_TAKEN},
	        {WRITE_TURN_QUEUED, WRITE_TURN_TICK_DUE, WRITE_TURN_QUEUED},
	        {WRITE_TURN_QUEUED, WRITE_TURN_TICK_ENDS, WRITE_TURN_NONE}, // decided otherwise
	        {WRITE_TURN_QUEUED, WRITE_TURN_REMOVES, WRITE_TURN_NONE},
	        {WRITE_TURN_TAKEN, WRITE_TURN_REFUSES, WRITE_TURN_TAKEN},
	        {WRITE_TURN_TAKEN, WRITE_TURN_COMES, WRITE_TURN_TAKEN},
	        {WRITE_TURN_TAKEN, WRITE_TURN_TICK_DUE, WRITE_TURN_FOLLOWED},
	        {WRITE_TURN_TAKEN, WRITE_TURN_TICK_ENDS, WRITE_TURN_NONE},
	        {WRITE_TURN_TAKEN, WRITE_TURN_REMOVES, WRITE_TURN_TAKEN}, // the write in flight ends
	        {WRITE_TURN_FOLLOWED, WRITE_TURN_REFUSES, WRITE_TURN_FOLLOWED},
	        {WRITE_TURN_FOLLOWED, WRITE_TURN_COMES, WRITE_TURN_FOLLOWED},
	        {WRITE_TURN_FOLLOWED, WRITE_TURN_TICK_DUE, WRITE_TURN_FOLLOWED},
	        {WRITE_TURN_FOLLOWED, WRITE_TURN_TICK_ENDS, WRITE_TURN_NONE},
	        {WRITE_TURN_FOLLOWED, WRITE_TURN_REMOVES, WRITE_TURN_TAKEN}, // no tick follows
	};
	_Static_assert(sizeof rows / sizeof rows[0] == (int)WRITE_TURN_STATE__COUNT * (int)WRITE_TURN_EVENT__COUNT,
	               "all");
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct write_turns w = {.max = 2};
		struct write_turn other = {0}, t = {0};
		bring(&w, &other, WRITE_TURN_QUEUED);
		bring(&w, &t, rows[i].before);
		write_turns_note(&w, &t, rows[i].event);
		if (t.state != rows[i].after)
			fail_msg("row %zu: state %d, expected %d", i, (int)t.state, (int)rows[i].after);
		assert_int_equal(w.n_taken, write_turn_is_taken(&t));
		assert_int_equal(w.n_queued, 1 + is_queued(&t));
		assert_ptr_equal(w.queue, &other);
		assert_ptr_equal(other.next, is_queued(&t) ? &t : NULL);
	}
}

static void turns_come_in_the_order_of_the_requests(void **state)
{
	struct write_turns w = {.max = 2};
	struct write_turn t[5] = {{0}};
	(void)state;
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(write_turns_request(&w, &t[i]), i < 2);
	assert_int_equal(w.n_queued, 3);
	for (size_t i = 2; i < 5; i++)
		write_turns_note(&w, &t[i], WRITE_TURN_TICK_ENDS);
	assert_null(write_turns_next(&w, is_ready));  // all are taken
	assert_false(write_turns_request(&w, &t[2])); // its next tick asks again, and keeps its place
	write_turns_note(&w, &t[0], WRITE_TURN_TICK_ENDS);
	assert_ptr_equal(write_turns_next(&w, is_ready), &t[3]); // t[2] has a tick
	write_turns_note(&w, &t[2], WRITE_TURN_TICK_ENDS);
	write_turns_note(&w, &t[1], WRITE_TURN_TICK_ENDS);
	assert_ptr_equal(write_turns_next(&w, is_ready), &t[2]);
	assert_true(write_turns_request(&w, &t[2]));
	assert_int_equal(w.n_taken, 2);
	write_turns_note(&w, &t[2], WRITE_TURN_TICK_ENDS);
	assert_ptr_equal(write_turns_next(&w, is_ready), &t[4]);
	write_turns_note(&w, &t[4], WRITE_TURN_TICK_ENDS);
	assert_null(write_turns_next(&w, is_ready));
	assert_int_equal(w.n_queued, 0);
}

static void search_for_the_next_turn_is_bounded(void **state)
{
	struct write_turns w = {.max = 0};
	struct write_turn t[MANY] = {{0}};
	(void)state;
	for (size_t i = 0; i < MANY; i++)
		assert_false(write_turns_request(&w, &t[i]));
	w.max = 1;
	write_turns_note(&w, &t[WRITE_TURNS_LOOKED_AT], WRITE_TURN_TICK_ENDS);
	assert_null(write_turns_next(&w, is_ready));
	write_turns_note(&w, &t[WRITE_TURNS_LOOKED_AT - 1], WRITE_TURN_TICK_ENDS);
	assert_ptr_equal(write_turns_next(&w, is_ready), &t[WRITE_TURNS_LOOKED_AT - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_event_leads_to_the_state_of_the_table),
	        cmocka_unit_test(turns_come_in_the_order_of_the_requests),
	        cmocka_unit_test(search_for_the_next_turn_is_bounded),
	};
	return cmocka_run_group_tests_name("write_turns", tests, NULL, NULL);
}
