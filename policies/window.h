// SPDX-License-Identifier: Apache-2.0
// The sliding window of one signal: its samples newer than now - duration, and their aggregate.
// Lives inside the flat state; the samples are an array beside it. Avg, Max and Min cost O(1) amortised: the window is
// a queue of two stacks (the old end keeps the aggregate of everything from a sample to the end of its stack), so
// nothing is ever subtracted and a large value leaves no trace once it is out. Sums are compensated (double-double).
#ifndef GPUSCALE_POLICIES_WINDOW_H
#define GPUSCALE_POLICIES_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy_window;

struct window_sample {
	int64_t time_ms;
	double value;             // finite
	double total, total_tail; // aggregate from this sample to the end of the old stack; the tail is for sums
};

struct window {
	uint64_t samples_offset;   // of the sample array in the state block
	uint32_t cap;              // 0: the signal has no window
	uint32_t head, len;        // ring: oldest sample, how many
	uint32_t n_old;            // of them on the old stack
	double fresh, fresh_tail;  // aggregate of the others
	int64_t covered_since_ms;  // time of the first sample since it was last empty; TIME_NONE
	int64_t newest_raw_ms;     // time of the last sample as it was given; TIME_NONE
	int64_t newest_dropped_ms; // last sample pushed out for want of room; TIME_NONE
};

// Samples to make room for: two per interval, at least 64 (a window must not lose samples because ticks come early),
// at most POLICY_WINDOW_SAMPLES_MAX.
uint32_t window_samples_needed(const struct policy_window *config, int64_t interval_ms);

void window_init(struct window *w, uint64_t samples_offset, uint32_t cap);
// Drops what is not newer than now_ms - duration.
void window_evict(struct window *w, struct window_sample *samples, const struct policy_window *config, int64_t now_ms);
// Adds a finite value. The same sample seen twice, and one not newer than the newest, changes nothing. A time ahead of
// now_ms is taken as now_ms. Call window_evict(now_ms) first.
void window_push(struct window *w, struct window_sample *samples, const struct policy_window *config, int64_t time_ms,
                 double value, int64_t now_ms);
// True when the aggregate may be used: with min_samples, from that many samples on; Last, from one; else once the
// history reaches back over the whole duration (as far as samples one interval apart can).
// *ret_left_ms: how long that still takes at this interval, 0 when filled.
bool window_is_filled(const struct window *w, const struct policy_window *config, int64_t interval_ms, int64_t now_ms,
                      int64_t *ret_left_ms);
// The aggregate of at least one sample; always finite. Percentiles interpolate linearly between ranks.
// Prometheus: promql/quantile.go, quantile().
double window_value(const struct window *w, const struct window_sample *samples, const struct policy_window *config);
// The i-th oldest sample, i < len.
const struct window_sample *window_at(const struct window *w, const struct window_sample *samples, uint32_t i);

#endif
