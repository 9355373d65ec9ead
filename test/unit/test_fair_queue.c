// SPDX-License-Identifier: Apache-2.0
// Goal of this test: namespaces take turns, slow items hold at most half of the slots, and no namespace holds all
// slots.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "promql/fair_queue.h"

#define ITEMS_MAX 64

struct named {
	struct fair_item item; // the first member
	char name;
	bool is_queued;
};

struct bench {
	struct fair_queue *q;
	struct named items[ITEMS_MAX];
	size_t n;
};

static void open_queue(struct bench *b, int slots)
{
	memset(b, 0, sizeof *b);
	b->q = fair_queue_new(slots);
	assert_non_null(b->q);
}

// A letter is an item of that namespace, a capital letter a slow item, '.' an item without a namespace.
static void add(struct bench *b, const char *letters)
{
	for (; *letters; letters++) {
		char name[2] = {(char)(*letters | 0x20), '\0'};
		struct named *n = &b->items[b->n++];
		assert_true(b->n <= ITEMS_MAX);
		*n = (struct named){.name = *letters, .is_queued = true};
		bool is_slow = *letters >= 'A' && *letters <= 'Z';
		assert_true(
		        fair_queue_add(b->q, &n->item, *letters == '.' ? NULL : name, is_slow ? FAIR_SLOW : FAIR_FAST));
	}
}

static void end(struct bench *b, struct named *n)
{
	fair_queue_remove(b->q, &n->item);
	n->is_queued = false;
}

static void close_queue(struct bench *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].is_queued)
			end(b, &b->items[i]);
	assert_int_equal(b->q->n_waiting, 0);
	assert_null(fair_queue_any(b->q));
	fair_queue_free(b->q);
}

static void expect_next(struct bench *b, const char *letters)
{
	char got[ITEMS_MAX + 1] = "";
	struct fair_item *item;
	for (size_t i = 0; (item = fair_queue_next(b->q)); i++)
		got[i] = ((struct named *)(void *)item)->name;
	assert_string_equal(got, letters);
}

static void items_start_in_turn(void **state)
{
	(void)state;
	static const struct {
		int slots;
		const char *added, *started;
	} rows[] = {
	        {8, "", ""},
	        {8, "abc", "abc"},
	        {8, "aaabbc", "abcaba"},
	        {4, "aaaaaaaab", "abaa"},
	        {4, "aaaaaaaa", "aaaa"}, // a single namespace may use all slots
	        {4, "b....aaaa", "b.a."},
	        {8, "AAAAAAAA", "AAA"},    // three quarters of a half
	        {8, "AAAABBBB", "ABA"},    // the last slot of the half is for a namespace without any
	        {8, "AAAABBBBCD", "ABCD"}, // half
	        {16, "AAAAAAAABBBBBBBBCD", "ABCDAB"},
	        {8, "AAAAaaaa", "aAaAaAa"}, // slow and fast in turn
	        {8, "AAAABBBBCCCCaaaabb", "aAbBaCba"},
	        {1, "A", "A"},
	        {1, "Aa", "a"},
	        {2, "AB", "A"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench b;
		open_queue(&b, rows[i].slots);
		add(&b, rows[i].added);
		expect_next(&b, rows[i].started);
		close_queue(&b);
	}
}

static void freed_slot_goes_to_the_next_namespace(void **state)
{
	(void)state;
	struct bench b;
	open_queue(&b, 4);
	add(&b, "aaaaaaaa");
	expect_next(&b, "aaaa");
	add(&b, "bb");
	end(&b, &b.items[0]);
	expect_next(&b, "b"); // a holds three quarters
	end(&b, &b.items[1]);
	expect_next(&b, "a");
	end(&b, &b.items[2]);
	expect_next(&b, "b");
	assert_int_equal(b.q->used[FAIR_FAST], 4);
	close_queue(&b);
}

static void slow_items_of_many_leave_room_for_the_first_of_another_namespace(void **state)
{
	(void)state;
	struct bench b;
	open_queue(&b, 16);
	add(&b, "AAAAAAAABBBBBBBB");
	expect_next(&b, "ABABAB"); // none of these ends for long
	add(&b, "C");
	expect_next(&b, "C");
	add(&b, "CD");
	expect_next(&b, "D");
	close_queue(&b);
}

static void queued_item_can_leave(void **state)
{
	(void)state;
	struct bench b;
	open_queue(&b, 1);
	add(&b, "abab");
	expect_next(&b, "a");
	end(&b, &b.items[1]); // the first b
	assert_int_equal(b.q->n_waiting, 2);
	end(&b, &b.items[0]);
	expect_next(&b, "b");
	end(&b, &b.items[3]);
	expect_next(&b, "a");
	close_queue(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(items_start_in_turn),
	        cmocka_unit_test(freed_slot_goes_to_the_next_namespace),
	        cmocka_unit_test(slow_items_of_many_leave_room_for_the_first_of_another_namespace),
	        cmocka_unit_test(queued_item_can_leave),
	};
	return cmocka_run_group_tests_name("fair_queue", tests, NULL, NULL);
}
