// SPDX-License-Identifier: Apache-2.0
// The planner of remediation as a filter: lines of observations in, lines of actions out, each action counted as
// carried out.
#ifndef GPUSCALE_REMEDY_REMEDY_REPLAY_H
#define GPUSCALE_REMEDY_REMEDY_REPLAY_H

#include <stddef.h>

#define REMEDY_LINE_BYTES_MAX (1024 * 1024)

struct buf;
struct err;
struct remedy_limits;
struct remedy_replay;

// Copies `limits`. NULL when memory is exhausted.
struct remedy_replay *remedy_replay_new(const struct remedy_limits *limits);
void remedy_replay_free(struct remedy_replay *p);

// For filters, with a struct remedy_replay: reads one line (docs/remediation.md) and appends the actions that follow to
// `out`, a line each; often none. For an invalid line it appends {"error": "line N: ..."} instead and returns -1 with
// *e, which does not name the line.
int remedy_replay_answer(void *replay, const char *line, size_t len, struct buf *out, struct err *e);

#endif
