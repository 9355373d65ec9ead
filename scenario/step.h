// SPDX-License-Identifier: Apache-2.0
// The engine as a filter: an observation in, a decision out, and the memory in between.
#ifndef GPUSCALE_SCENARIO_STEP_H
#define GPUSCALE_SCENARIO_STEP_H

#include <stddef.h>

struct buf;
struct err;
struct policy;
struct step;

// policy stays the caller's and must outlive it. NULL when memory ends.
struct step *step_new(const struct policy *policy);
void step_free(struct step *s);

// Reads one observation (step_line.h), decides, and appends the decision as one line of JSON (an item of a
// DecisionList) to `out`. Replicas that differ from the line before mean that the target was scaled: that is told to
// the engine as of the time of the line before, whose decision asked for it, just as `run` does after its write. -1 and
// *e when the line cannot be used (also when its time lies before the last one's): then {"error": "..."} is appended
// instead and nothing is remembered of it.
int step_answer(struct step *s, const char *line, size_t len, struct buf *out, struct err *e);
// {"error": msg} and a line end.
void step_put_error(struct buf *out, const char *msg);

#endif
