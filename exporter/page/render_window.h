// SPDX-License-Identifier: Apache-2.0
// Renders gpuscale_gpu_<name>_window_min, _max and _avg: the minimum, maximum and mean of a family over the window,
// with the labels and the unit of the family, so that the two can be compared without `on`.
#ifndef GPUSCALE_EXPORTER_PAGE_RENDER_WINDOW_H
#define GPUSCALE_EXPORTER_PAGE_RENDER_WINDOW_H

#include <stddef.h>

struct buf;
struct csv_counters;
struct device_history;

// Label blocks from render_page_round(): block k is text[start[k] .. start[k + 1]) and belongs to device[k].
struct label_blocks {
	const char *text;
	const size_t *start, *device;
	size_t n;
};

// Appends the windows of every family that has a value and that `counters` selects; NULL selects all.
void render_window_families(struct buf *out, const struct csv_counters *counters, const struct label_blocks *blocks,
                            const struct device_history *history);

#endif
