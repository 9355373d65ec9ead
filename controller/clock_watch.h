// SPDX-License-Identifier: Apache-2.0
// Handles a wall clock that is set. All stamps that this process remembers are moved by the step: an event a minute ago
// stays a minute ago, and no stamp hours in the future blocks scaling.
#ifndef GPUSCALE_CONTROLLER_CLOCK_WATCH_H
#define GPUSCALE_CONTROLLER_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/shard/clock_step_detector.h"

struct err;
struct event;
struct managed_policies;

// Interval of the checks; a clock that is slewed moves by less than CLOCK_STEP_MS in this time.
#define CLOCK_WATCH_MS 1000

struct clock_watch { // zero it before use
	struct managed_policies *all;
	int64_t start_ms; // wall clock at the start of the process
	struct clock_step_detector detector;
	struct event *timer; // NULL: none
};

// once: the process exits soon, so nothing is checked in the background.
int clock_watch_open(struct clock_watch *w, struct managed_policies *all, bool once, struct err *e);
void clock_watch_close(struct clock_watch *w);
// Call before reading a time that is stored as a stamp. If the wall clock was set, moves all remembered times. arg: the
// clock watch.
void clock_watch_check(void *arg);

#endif
