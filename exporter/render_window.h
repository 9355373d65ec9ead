// SPDX-License-Identifier: Apache-2.0
// gpuscale_gpu_<name>_window_min, _max and _avg: what a family did within the window, under the labels of the family,
// so that the two can be compared without `on`. They keep the family's unit.
#ifndef GPUSCALE_EXPORTER_RENDER_WINDOW_H
#define GPUSCALE_EXPORTER_RENDER_WINDOW_H

#include <stddef.h>

struct buf;
struct counters;
struct device_history;

// Label blocks as render_samples makes them: block k is text[start[k] .. start[k + 1]) and belongs to device[k].
struct label_blocks {
	const char *text;
	const size_t *start, *device;
	size_t n;
};

// Appends the windows of every family that counters chooses (NULL: all) and that has a value.
void render_windows(struct buf *out, const struct counters *counters, const struct label_blocks *blocks,
                    const struct device_history *history);

#endif
