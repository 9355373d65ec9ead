// SPDX-License-Identifier: Apache-2.0
// A command as a filter: lines of input, and the answer to each on standard output.
#ifndef GPUSCALE_CLI_TERM_LINE_FILTER_H
#define GPUSCALE_CLI_TERM_LINE_FILTER_H

#include <stddef.h>

struct buf;
struct err;

struct line_filter {
	const char *command;   // for messages: "gpuscale step"
	size_t line_bytes_max; // `answer` reports a longer line; the rest of that line is skipped
	void *context;
	// Appends the answer to `out`: whole lines. Returns 0, or -1 and *e when the line could not be used.
	int (*answer)(void *context, const char *line, size_t len, struct buf *out, struct err *e);
	// Called at the end of the input, to append what is still to be written. NULL: nothing is.
	void (*finish)(void *context, struct buf *out);
	const char *path; // where the lines come from; NULL or "-" = standard input
};

// Answers every line of the input; answers are written before the next line is awaited. Reports the first line
// that could not be used on standard error. Returns the exit code of the process.
int line_filter_run(const struct line_filter *filter);

#endif
