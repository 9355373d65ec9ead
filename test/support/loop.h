// SPDX-License-Identifier: Apache-2.0
// Turning an event loop in tests, never for longer than asked.
#ifndef GPUSCALE_TEST_SUPPORT_LOOP_H
#define GPUSCALE_TEST_SUPPORT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;

// Nothing counts as never before this: a busy machine must not look like a fault.
#define TEST_PATIENCE_MS 60000

// Turns the loop until *counter >= wanted (true) or limit_ms, or TEST_PATIENCE_MS where that is more, have passed
// (false).
bool test_loop_until(struct event_base *loop, const int *counter, int wanted, int64_t limit_ms);
// Turns the loop until the condition holds, and fails the test when it does not within TEST_PATIENCE_MS: for what
// comes about in its own time. cmocka.h is to be included before.
#define TEST_BECOMES(loop, condition)                                                                                  \
	do {                                                                                                           \
		int64_t becomes_end_ms = test_now_ms() + TEST_PATIENCE_MS;                                             \
		while (!(condition) && test_now_ms() < becomes_end_ms)                                                 \
			test_loop_for((loop), 2);                                                                      \
		assert_true(condition);                                                                                \
	} while (0)
// Turns the loop for ms.
void test_loop_for(struct event_base *loop, int64_t ms);
// Monotonic milliseconds, for measuring how long something took.
int64_t test_now_ms(void);

#endif
