// SPDX-License-Identifier: Apache-2.0
// gpuscale detect: stragglers and memory leaks as a line filter, so that anyone can test the detectors.
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/line_filter.h"
#include "insight/detect_line.h"

#define OUTPUT_MAX (64 * 1024 * 1024)

struct detect_context {
	struct buf events;
	struct detect_lines *lines;
};

static void move_events(struct detect_context *c, struct buf *out)
{
	buf_put(out, buf_str(&c->events), c->events.len);
	out->failed = out->failed || c->events.failed;
	buf_reset(&c->events);
}

static int answer(void *context, const char *line, size_t len, struct buf *out, struct err *e)
{
	struct detect_context *c = context;
	int rc = detect_lines_read(c->lines, line, len, e);
	move_events(c, out);
	return rc;
}

static void finish(void *context, struct buf *out)
{
	struct detect_context *c = context;
	detect_lines_finish(c->lines);
	move_events(c, out);
}

int cmd_detect(int argc, char **argv)
{
	const struct argp argp = {NULL, NULL, "", "x", NULL, NULL, NULL};
	args_parse(&argp, argc, argv, NULL);
	struct detect_context c;
	buf_init(&c.events, OUTPUT_MAX);
	c.lines = detect_lines_new(&c.events);
	const struct line_filter filter = {"gpuscale detect", DETECT_LINE_BYTES_MAX, &c, answer, finish};
	int code = EXIT_FAILED;
	if (c.lines)
		code = line_filter_run(&filter);
	else
		fputs("gpuscale detect: out of memory\n", stderr);
	detect_lines_free(c.lines);
	buf_done(&c.events);
	return code;
}
