// SPDX-License-Identifier: Apache-2.0
// Reports on standard error how far a command is: a line that is redrawn on a terminal, else a line every ten seconds.
#ifndef GPUSCALE_CLI_TERM_PROGRESS_H
#define GPUSCALE_CLI_TERM_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

struct event;
struct event_base;

#define PROGRESS_REDRAW_MS 100   // shortest time between two drawings on a terminal
#define PROGRESS_LINE_MS   10000 // time between two lines elsewhere
#define PROGRESS_DELAY_MS  1000  // a delay_ms for a command that is usually done by then

struct progress {
	const char *what; // in front of the line, such as "reading"; set by the command
	int64_t delay_ms; // a terminal shows nothing before this time; set by the command
	size_t done, total;
	int64_t started_ms, shown_ms; // 0: not yet
	struct event *timer;
};

// Shows "WHAT [####    ] 45% DETAIL" on a terminal, "WHAT: 45 % after 20 s" elsewhere, unless the last time is too
// short ago. Does nothing when `total` is 0.
void progress_show(struct progress *p, size_t done, size_t total, const char *detail);
// Reports the progress every second while `loop` runs, until progress_clear(): for a command that waits for replies.
// Between two calls, the command may set p->done and p->total; a total of 0 is unknown.
void progress_watch(struct progress *p, struct event_base *loop);
// Removes the line and the timer, so that other output can follow.
void progress_clear(struct progress *p);

#endif
