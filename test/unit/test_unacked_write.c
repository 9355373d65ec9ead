// SPDX-License-Identifier: Apache-2.0
// Goal: a scale that got no answer is counted once when it was done, and not at all when it was not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "controller/tick/unacked_write.h"

static void fail_with(struct unacked_write *u, enum err_kind kind, int32_t from, int32_t to, int64_t now_ms)
{
	struct err e = {.kind = kind};
	unacked_write_failed(u, &e, from, to, now_ms);
}

static void only_errors_that_leave_it_open_open_it(void **state)
{
	(void)state;
	for (int kind = ERR_USAGE; kind < ERR__COUNT; kind++) {
		struct unacked_write u;
		unacked_write_clear(&u);
		fail_with(&u, (enum err_kind)kind, 1, 3, 0);
		assert_int_equal(unacked_write_is_open(&u), kind == ERR_CONFLICT || kind == ERR_UNREACHABLE ||
		                                                    kind == ERR_TIMEOUT || kind == ERR_SERVER ||
		                                                    kind == ERR_PROTOCOL || kind == ERR_LIMIT);
	}
}

static void write_without_an_answer_is_found_when_it_comes(void **state)
{
	(void)state;
	struct unacked_write u;
	int32_t from = -7;
	unacked_write_clear(&u);
	assert_false(unacked_write_found(&u, 3, 0, &from));
	fail_with(&u, ERR_TIMEOUT, 1, 3, 1000);
	assert_false(unacked_write_found(&u, 1, 2000, &from)); // not yet
	fail_with(&u, ERR_AUTH, 1, 3, 3000);                   // a later one was refused: the first is open still
	assert_true(unacked_write_is_open(&u));
	assert_true(unacked_write_found(&u, 3, 4000, &from));
	assert_int_equal(from, 1);
	assert_false(unacked_write_found(&u, 3, 5000, &from)); // once
}

static void change_by_another_process_is_not_counted(void **state)
{
	(void)state;
	struct unacked_write u;
	int32_t from;
	unacked_write_clear(&u);
	fail_with(&u, ERR_CONFLICT, 1, 3, 1000);
	assert_false(unacked_write_found(&u, 4, 1001, &from));
	assert_false(unacked_write_is_open(&u));
}

static void write_that_was_never_done_is_forgotten(void **state)
{
	(void)state;
	struct unacked_write u;
	int32_t from;
	unacked_write_clear(&u);
	fail_with(&u, ERR_TIMEOUT, 1, 3, 1000);
	assert_false(unacked_write_found(&u, 1, 1000 + UNACKED_WRITE_MS, &from));
	assert_false(unacked_write_is_open(&u));
}

static void any_difference_to_the_past_counts(void **state)
{
	(void)state;
	struct unacked_write u;
	int32_t from;
	unacked_write_of_past(&u, -1);
	assert_false(unacked_write_is_open(&u));
	unacked_write_of_past(&u, 0);
	assert_true(unacked_write_is_open(&u));
	assert_true(unacked_write_found(&u, 7, 0, &from));
	assert_int_equal(from, 0);
	unacked_write_of_past(&u, 2);
	assert_false(unacked_write_found(&u, 2, 0, &from));
	assert_false(unacked_write_is_open(&u));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(only_errors_that_leave_it_open_open_it),
	        cmocka_unit_test(write_without_an_answer_is_found_when_it_comes),
	        cmocka_unit_test(change_by_another_process_is_not_counted),
	        cmocka_unit_test(write_that_was_never_done_is_forgotten),
	        cmocka_unit_test(any_difference_to_the_past_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
