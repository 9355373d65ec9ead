// SPDX-License-Identifier: Apache-2.0
// The picture of the demo as an SVG: demand, utilisation against its watermarks, and replicas, one chart above the
// other.
#ifndef GPUSCALE_TEST_DEMO_PICTURE_H
#define GPUSCALE_TEST_DEMO_PICTURE_H

#include <stddef.h>
#include <stdint.h>

struct buf;

// One reading; it holds until the next one.
struct picture_row {
	double time_s; // since the start; growing
	double demand; // requests/s; NaN draws a gap, as in utilization_ratio
	double utilization_ratio;
	int32_t spec_replicas, ready_replicas;
};

struct picture {
	const struct picture_row *rows;
	size_t n;
	double high_ratio, low_ratio; // the watermarks
	const char *titles[3];        // of demand, utilisation and replicas; any text
};

// Appends the document. Sets out->failed when it does not fit, or when memory is exhausted.
void picture_put(struct buf *out, const struct picture *p);

#endif
