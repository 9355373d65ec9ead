// SPDX-License-Identifier: Apache-2.0
// The history of each device: its last readings within the window, in rings of fixed size; the offsets of its
// counters, so that they continue when the driver resets them; and whether it was ever found. No I/O, no clock.
#ifndef GPUSCALE_EXPORTER_DEVICE_HISTORY_H
#define GPUSCALE_EXPORTER_DEVICE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/device.h"

struct err;
struct device_history;

#define DEVICE_HISTORY_SAMPLES_MAX 600 // readings of one field and device: limits window / interval
#define DEVICE_HISTORY_DEVICES_MAX                                                                                     \
	(DEVICES_MAX + 64) // further devices replace the one that has been missing for longest

// The statistics of the readings in a window.
struct window {
	double min, max;
	// Each reading is weighted with the time since the previous one, which is exact for readings that are means
	// themselves. The mean of POWER_USAGE is energy by time if the device has an energy counter.
	double avg;
};

// `window_ms` 0 disables the windows; everything else works. Returns NULL and fills `e` with ERR_LIMIT
// (DEVICE_HISTORY_SAMPLES_MAX) or ERR_INTERNAL.
struct device_history *device_history_new(int64_t window_ms, int64_t interval_ms, struct err *e);
void device_history_free(struct device_history *h);
// Adds the round at `t_ms`. Counters that the driver resets are continued: their values in `samples` are changed.
void device_history_add(struct device_history *h, int64_t t_ms, const struct device *devices,
                        struct device_sample *samples, size_t n);
// Reads the window of field `f` of device `i` of the last round. False if no window is kept for this field or the
// last round had no value.
bool device_history_window(const struct device_history *h, size_t i, enum field f, struct window *ret_window);
// The number of GPUs (not MIG instances) that were found earlier and are missing from the last round. `all_gone`
// means that there was no last round.
size_t device_history_missing(const struct device_history *h, bool all_gone);
int64_t device_history_window_ms(const struct device_history *h);

#endif
