// SPDX-License-Identifier: Apache-2.0
// Reads a recording from OpenMetrics text with timestamps, as `promtool tsdb dump-openmetrics` writes it.
#ifndef GPUSCALE_REPLAY_RECORDING_OPENMETRICS_H
#define GPUSCALE_REPLAY_RECORDING_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct recording;

#define OPENMETRICS_SAMPLES_MAX    4000000 // samples in all series together
#define OPENMETRICS_LABELS_MAX     32      // labels of one series
#define OPENMETRICS_LOOKBACK_STEPS 2       // a cell of a grid has a sample that is at most this many steps old

// Returns whether the first line starts with '#' or the last line is "# EOF".
bool recording_is_openmetrics(const char *text, size_t len);

// Reads text[0..len), which `file` names in errors, into the zeroed *ret: one column per series, called NAME{LABELS}
// with the labels in the order of their names. When one series has a sample at every time of the file, the rows are
// these times. Otherwise the rows are one usual step of the densest series apart, and a cell has the newest sample
// that is at most OPENMETRICS_LOOKBACK_STEPS steps old. Returns 0, or -1 and *e ("FILE:LINE: ..."): ERR_INPUT (no
// "# EOF", a sample without a timestamp, a value that is infinite or not a number, a time that does not grow within its
// series, fewer than two times), ERR_LIMIT, ERR_INTERNAL.
int recording_openmetrics_parse(const char *text, size_t len, const char *file, struct recording *ret, struct err *e);

#endif
