// SPDX-License-Identifier: Apache-2.0
// Timers of libevent in milliseconds.
#ifndef GPUSCALE_BASE_TIMER_H
#define GPUSCALE_BASE_TIMER_H

#include <event2/event.h>
#include <stdint.h>

static inline struct timeval timer_value(int64_t ms)
{
	return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

// Lets `timer` fire `ms` from now, at once when ms is 0 or less; a pending timer is moved. With EV_PERSIST it fires
// every `ms`. Returns 0, or -1 when there is no memory, which cannot happen to a timer that is pending.
static inline int timer_start(struct event *timer, int64_t ms)
{
	const struct timeval delay = timer_value(ms > 0 ? ms : 0);
	return event_add(timer, &delay);
}

// Frees an event of event_new(); NULL is fine.
static inline void timer_free(struct event *timer)
{
	if (timer)
		event_free(timer);
}

#endif
