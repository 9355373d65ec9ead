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
// Turns the loop for ms.
void test_loop_for(struct event_base *loop, int64_t ms);
// Monotonic milliseconds, for measuring how long something took.
int64_t test_now_ms(void);

#endif
