// SPDX-License-Identifier: Apache-2.0
// The engine as a filter: reads observations, writes decisions, and keeps the state.
#ifndef GPUSCALE_POLICIES_TEST_STEP_H
#define GPUSCALE_POLICIES_TEST_STEP_H

#include <stddef.h>

struct buf;
struct err;
struct binding;
struct step;

// The caller keeps ownership of `binding`, which must outlive the result. Returns NULL when memory is exhausted.
struct step *step_new(const struct binding *binding);
void step_free(struct step *s);

// Reads one observation (step_line.h), decides, and appends the decision to `out` as one line of JSON, an item of a
// DecisionList. Replicas that differ from the previous line mean that the target was scaled: the engine records that
// scale at the time of the previous line, whose decision asked for it, as `run` does after its write. Returns 0. For an
// invalid line, or one with an earlier time than the last, it appends {"error": "..."} instead, does not change the
// state, and returns -1 with *e.
int step_answer(struct step *s, const char *line, size_t len, struct buf *out, struct err *e);
// {"error": msg} and a line end.
void step_put_error(struct buf *out, const char *msg);

#endif
