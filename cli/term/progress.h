// SPDX-License-Identifier: Apache-2.0
// A progress bar on standard error, for commands that take a while. Without a terminal, nothing is written.
#ifndef GPUSCALE_CLI_TERM_PROGRESS_H
#define GPUSCALE_CLI_TERM_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#define PROGRESS_REDRAW_MS 100 // shortest time between two drawings

struct progress {
	const char *what; // in front of the bar, such as "reading"; set by the command
	int64_t drawn_ms; // 0: not yet
};

// Draws "WHAT [####    ] 45% DETAIL" when standard error is a terminal and the last drawing is long enough ago.
void progress_show(struct progress *p, size_t done, size_t total, const char *detail);
// Removes the bar, so that other output can follow.
void progress_clear(struct progress *p);

// Replaces the last line of the terminal by formatted text (base/print.h), without a newline.
void progress_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
