// SPDX-License-Identifier: Apache-2.0
// What is remembered of each device from round to round: the last readings within the window, in rings of fixed size;
// where its counters stood, so that they go on when the driver starts over; and that it was there at all. No I/O, no
// clock.
#ifndef GPUSCALE_EXPORTER_DEVICE_HISTORY_H
#define GPUSCALE_EXPORTER_DEVICE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/device.h"

struct err;
struct device_history;

#define DEVICE_HISTORY_SAMPLES_MAX 600                // of one field and device: window / interval may not pass it
#define DEVICE_HISTORY_DEVICES_MAX (DEVICES_MAX + 64) // then the one not seen for longest is forgotten

// Over the readings of the window.
struct window {
	double min, max;
	// Each reading counts for the time since the one before, which is exact for readings that are means themselves;
	// that of POWER_USAGE is energy by time where the device has an energy counter.
	double avg;
};

// window_ms 0: no windows, the rest works. NULL and *e: ERR_LIMIT (DEVICE_HISTORY_SAMPLES_MAX), ERR_INTERNAL.
struct device_history *device_history_new(int64_t window_ms, int64_t interval_ms, struct err *e);
void device_history_free(struct device_history *h);
// Takes a round in. Counters that start over with the driver are carried on: their values in samples are changed.
void device_history_add(struct device_history *h, int64_t t_ms, const struct device *devices,
                        struct device_sample *samples, size_t n);
// The window of field f of device i of the last round. False: no window is kept for this field, or the last round had
// no value.
bool device_history_window(const struct device_history *h, size_t i, enum field f, struct window *ret_window);
// GPUs (not MIG instances) that were there once and were not in the last round. all_gone: there was no last round.
size_t device_history_missing(const struct device_history *h, bool all_gone);
int64_t device_history_window_ms(const struct device_history *h);

#endif
