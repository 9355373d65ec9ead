// SPDX-License-Identifier: Apache-2.0
#include "test/support/loop.h"

#include <event2/event.h>
#include <stddef.h>
#include <time.h>

#define SETTLE_TURNS 20

int64_t test_now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {}

static bool turn_until(struct event_base *loop, const int *counter, int wanted, int64_t limit_ms)
{
	int64_t end = test_now_ms() + limit_ms;
	struct timeval tv = {.tv_usec = 5000};
	struct event *tick = event_new(loop, -1, EV_PERSIST, on_tick, NULL); // so that a turn never waits for long
	if (!tick)
		return false;
	event_add(tick, &tv);
	while (*counter < wanted && test_now_ms() < end)
		event_base_loop(loop, EVLOOP_ONCE);
	event_free(tick);
	return *counter >= wanted;
}

bool test_loop_until(struct event_base *loop, const int *counter, int wanted, int64_t limit_ms)
{
	return turn_until(loop, counter, wanted, limit_ms > TEST_PATIENCE_MS ? limit_ms : TEST_PATIENCE_MS);
}

void test_loop_for(struct event_base *loop, int64_t ms)
{
	int never = 0;
	turn_until(loop, &never, 1, ms);
	// Where the process did not run for most of that time, what was due is still to be done.
	for (int i = 0; i < SETTLE_TURNS; i++)
		event_base_loop(loop, EVLOOP_NONBLOCK);
}
