// SPDX-License-Identifier: Apache-2.0
// From points to SVG path data: which points are drawn, and the pen's way along them. Private to the timeline.
#ifndef GPUSCALE_TEST_SUPPORT_TIMELINE_PATH_H
#define GPUSCALE_TEST_SUPPORT_TIMELINE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/support/timeline.h"

struct buf;

// A panel's rectangle in px and what its edges mean: time t0..t1 from left to right, value 0..top from bottom to top.
struct timeline_frame {
	double left, right, upper, lower;
	int64_t t0_ms, t1_ms; // t1 > t0
	double top;
};

// One of the four series; NaN where it is not known.
typedef double timeline_series_fn(const struct timeline_point *p);

double timeline_x(const struct timeline_frame *f, int64_t time_ms);
// Cut to the frame.
double timeline_y(const struct timeline_frame *f, double value);
// A coordinate with at most one decimal, whatever the locale.
void timeline_put_coord(struct buf *out, double v);

// The points worth drawing: per pixel column the first, the last, the lowest, the highest and one gap of the series, in
// order of time. ret_kept holds TIMELINE_KEPT_PER_COLUMN places per column; returns how many are used.
#define TIMELINE_KEPT_PER_COLUMN 5
size_t timeline_thin(const struct timeline_frame *f, const struct timeline_point *points, size_t n,
                     timeline_series_fn *value, uint32_t *ret_kept);

// Path data ("M..L..") of the series over the kept points. step: holds each value until the next point. area: closed
// down to the value `base`. Gaps interrupt it; a point alone between gaps is a line of length 0, which round caps show.
void timeline_put_path(struct buf *out, const struct timeline_frame *f, const struct timeline_point *points,
                       const uint32_t *kept, size_t n_kept, timeline_series_fn *value, bool step, bool area,
                       double base);

#endif
