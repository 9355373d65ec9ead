// SPDX-License-Identifier: Apache-2.0
// The picture of a run: demand, utilisation against its watermarks, and replicas, over one time axis, as an SVG.
// Pure: the same points and options give the same bytes. Used by `make demo` and `backtest --svg`.
#ifndef GPUSCALE_TEST_SUPPORT_TIMELINE_H
#define GPUSCALE_TEST_SUPPORT_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "policies/engine/decision.h"

struct buf;
struct err;

#define TIMELINE_POINTS_MAX     2000000
#define TIMELINE_WIDTH_MIN      320
#define TIMELINE_WIDTH_MAX      4096
#define TIMELINE_HEIGHT_MIN     320
#define TIMELINE_HEIGHT_MAX     4096
#define TIMELINE_TEXT_BYTES_MAX 200

// One tick. Values hold until the next point's time.
struct timeline_point {
	int64_t time_ms;          // since any origin; must not go back
	double demand;            // in options.demand_unit; NaN or Inf = not known, drawn as a gap
	double utilization_ratio; // 0..1 and beyond; NaN or Inf = not known, drawn as a gap
	int32_t desired_replicas, ready_replicas;
	enum action action; // ACTION_SCALE_UP and ACTION_SCALE_DOWN get a mark
};

enum timeline_clock { TIMELINE_ELAPSED, TIMELINE_UTC, TIMELINE_CLOCK__COUNT };

struct timeline_options {
	const char *title;       // NULL: none; at most TIMELINE_TEXT_BYTES_MAX bytes, like the two below
	const char *subtitle;    // NULL: none
	const char *demand_unit; // "requests/s"; NULL: none
	double high_ratio;       // watermarks or target of the utilisation; 0 = none
	double low_ratio;
	int width, height;         // px; 0: 960 x 600
	enum timeline_clock clock; // the time axis: since the first point, or time_ms as UTC
};

// Appends one <svg> document to out: valid XML, no reference to anything outside, readable on light and dark pages.
// n = 0 draws the frame and says so. More points than pixels are thinned so that every peak stays (M4, Jugel et al.,
// VLDB 2014): the size is bounded by the width, not by n. -1 and *e: ERR_INPUT (size, marks, time going back),
// ERR_LIMIT (points, text, or out's ceiling; then out is failed).
int timeline_render(struct buf *out, const struct timeline_point *points, size_t n,
                    const struct timeline_options *options, struct err *e);

#endif
