// SPDX-License-Identifier: Apache-2.0
// The commands beside serving: check, top, list. Each reads pages of metrics, from a running exporter, a file, or a
// sampler of its own, and says what they mean.
//   cmd.c         which command, where pages come from
//   cmd_check.c   health of the GPUs, for node-problem-detector and people
//   cmd_table.c   top and list: a table, JSON or CSV
//   cmd_view.c    a page read back
#ifndef GPUSCALE_EXPORTER_CMD_H
#define GPUSCALE_EXPORTER_CMD_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/options.h"

struct buf;
struct clock;
struct err;
struct event_base;
struct sampler;
struct view;

#define CMD_PAGE_BYTES_MAX (20 * 1024 * 1024)
#define CMD_TIMEOUT_MS     5000 // until a page must be there
#define CMD_CHECK_UNKNOWN  2    // exit codes of check, as node-problem-detector reads them
#define CMD_CHECK_PROBLEM  1
#define CMD_STALE_MS       300000 // a sample older than this tells nothing about health

struct cmd {
	const struct exporter_options *options;
	struct event_base *loop;   // not owned
	const struct clock *clock; // not owned
	struct sampler *sampler;   // its own, started; NULL: pages come from `from`
	const char *from;          // URL, path, or "-"
	struct buf *ret_errors;    // gets a line for every fault of a file
};

// Where a running exporter serves that listens as `listen` says: "http://127.0.0.1:9400/metrics". size >= 300.
void cmd_default_url(char *out, size_t size, const char *listen);
// Reads one page into *out (made empty first) and from there into a view. NULL and *e when there is none.
struct view *cmd_read(struct cmd *c, struct buf *out, struct err *e);
// Runs the command of the options; first may be a view read before, or NULL; it is freed. Returns the exit code.
int cmd_run(struct cmd *c, struct view *first, struct err *e);

// cmd_check.c. NULL as v: there is no page, for the reason in *e.
int cmd_check(struct cmd *c, const struct view *v, const struct err *why, struct buf *out, struct err *e);
// cmd_table.c: appends the view as the options say.
void cmd_table(const struct exporter_options *o, const struct view *v, struct buf *out);

#endif
