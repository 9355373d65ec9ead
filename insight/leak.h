// SPDX-License-Identifier: Apache-2.0
// Finds memory that grows until it reaches its limit: of a GPU, or of a container. Pure: no clock, no I/O.
//
// The floor is the minimum over windows, so that batches, sawtooths shorter than a window and freed buffers do not
// count. Four scales run at the same time, with windows of 8, 20, 60 and 180 minutes, LEAK_WINDOWS of each. The floor
// leaks when its slope (Theil-Sen: the median of the slopes of all pairs) is positive and the growth is monotone
// (Kendall's tau), steady (both halves grow alike: a cache that fills slows down) and spread (no window has more than a
// fifth of it: an allocator grows in a few steps), and when the floor is higher than ever before. A scale
// extrapolates about as far as it has observed: 2.8, 4, 16 and 48 hours.
#ifndef GPUSCALE_INSIGHT_LEAK_H
#define GPUSCALE_INSIGHT_LEAK_H

#include <stdbool.h>
#include <stdint.h>

#define LEAK_WINDOWS         16
#define LEAK_SCALES          4
#define LEAK_SLOPE_MIN       (64.0 * 1024 * 1024) // bytes per hour: less is not reported
#define LEAK_EPOCH_BYTES_MIN 1e9                  // growth per epoch that is a leak
#define LEAK_EPOCHS          4                    // in each of which the floor must grow by as much

struct leak_scale {
	double floors[LEAK_WINDOWS]; // ring
	double peak;                 // the highest floor that was in the ring before
	unsigned long n_floors;      // ever
	double floor;                // floor of the window so far
	int64_t window;              // its number; the floor is of this window
	bool is_open;
};

// Growth of the memory of one GPU or container. Zero it to start. A value, without pointers.
struct leak {
	struct leak_scale scales[LEAK_SCALES];
	double epoch_floors[LEAK_EPOCHS + 1];
	double epoch_floor;
	int64_t epoch, n_epochs, last_ms;
	double last_bytes, found_bytes; // the latest memory; the memory when the leak was found
	bool has_epoch, has_value, is_leaking, is_by_epoch;
};

enum leak_change { LEAK_NONE, LEAK_FOUND, LEAK_ENDED };

struct leak_report {
	double bytes_per_hour;
	double bytes_per_epoch; // 0: not found by epochs
	double hours_to_limit;  // < 0: the limit is unknown
	double observed_hours;  // the period that the slope is from
};

// Adds the memory in use at time_ms, which grows from call to call (other values are ignored, as are values that are
// not finite or negative). limit_bytes: the size of the GPU's memory or the limit of the container; 0: unknown, then
// only growth over the longest scale is reported. epoch: the number of the epoch in progress; negative: unknown.
// Returns LEAK_FOUND with *ret_report once, and LEAK_ENDED when a leak that was found no longer grows, or the memory
// was freed.
enum leak_change leak_add(struct leak *l, int64_t time_ms, double bytes, double limit_bytes, int64_t epoch,
                          struct leak_report *ret_report);

#endif
