// SPDX-License-Identifier: Apache-2.0
// Reads the input of `gpuscale detect` line by line: JSON, a line per time, or CSV, a row per time and rank.
//   {"time": 1800, "job": "ml/bert", "step": {"0": 0.47, "1": 0.45}, "memory": {"0": 3.2e10}, "memoryLimit": 8e10}
//   time,rank,step
//   1800,0,0.47
#ifndef GPUSCALE_INSIGHT_DETECT_LINE_H
#define GPUSCALE_INSIGHT_DETECT_LINE_H

#include <stddef.h>

struct buf;
struct err;

#define DETECT_LINE_BYTES_MAX (1024 * 1024)
#define DETECT_COLUMNS_MAX    64

struct detect_lines;

// Creates a reader that appends events to `out` (insight/detect.h). Returns NULL when memory is exhausted.
struct detect_lines *detect_lines_new(struct buf *out);
void detect_lines_free(struct detect_lines *l);
// Reads text[0..len), a line without its end. The first line decides: JSON if it starts with '{', else the header of
// CSV. -1 and *e: the line was not used, or only up to the value that the message names.
int detect_lines_read(struct detect_lines *l, const char *text, size_t len, struct err *e);
// Ends the input. May append events.
void detect_lines_finish(struct detect_lines *l);

#endif
