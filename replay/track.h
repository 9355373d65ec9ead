// SPDX-License-Identifier: Apache-2.0
// A value over time in bounded memory: of each of TRACK_SPANS equal times the lowest, the highest and the last value.
#ifndef GPUSCALE_REPLAY_TRACK_H
#define GPUSCALE_REPLAY_TRACK_H

#include <stddef.h>
#include <stdint.h>

#define TRACK_SPANS      1000
#define TRACK_POINTS_MAX (3 * TRACK_SPANS + 1)

enum track_state { TRACK_EMPTY, TRACK_GAP, TRACK_VALUE };

struct track {
	int64_t from_ms, to_ms; // since the epoch
	float low[TRACK_SPANS], high[TRACK_SPANS], last[TRACK_SPANS];
	unsigned char state[TRACK_SPANS];
};

// The time from_ms <= t < to_ms.
void track_init(struct track *t, int64_t from_ms, int64_t to_ms);
// Adds the value at time_ms; NaN is a gap. Values are added in the order of time; those outside of the time are
// ignored.
void track_add(struct track *t, int64_t time_ms, double value);
// Writes the track as points of a step line: x in ms since the epoch, NaN in y where a gap starts, and the end of the
// time as last x. x and y have room for TRACK_POINTS_MAX. Returns how many points there are; 0 without any value.
size_t track_points(const struct track *t, double *x, double *y);

#endif
