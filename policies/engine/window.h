// SPDX-License-Identifier: Apache-2.0
// The sliding window of one signal: its samples newer than now - duration, and their aggregate. Part of the flat state,
// which also contains the array of samples. Avg, Max and Min cost O(1) amortised: the window is a queue of two stacks,
// and each sample of the old stack stores the aggregate from itself to the end of its stack. Nothing is ever
// subtracted, so that a large value has no influence once it has left. Sums are compensated (double-double).
#ifndef GPUSCALE_POLICIES_ENGINE_WINDOW_H
#define GPUSCALE_POLICIES_ENGINE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct policy_window;

struct window_sample {
	int64_t time_ms;
	double value;             // finite
	double total, total_tail; // aggregate from this sample to the end of the old stack; the tail is for sums
};

struct window {
	uint64_t samples_offset;   // from this struct to the array of its samples
	uint32_t cap;              // 0: the signal has no window
	uint32_t head, len;        // ring: oldest sample, how many
	uint32_t n_old;            // how many of them are on the old stack
	double fresh, fresh_tail;  // aggregate of the others
	int64_t covered_since_ms;  // time of the first sample since it was last empty; TIME_NONE
	int64_t newest_raw_ms;     // unlimited time of the last sample; TIME_NONE
	int64_t newest_dropped_ms; // time of the last sample dropped for lack of room; TIME_NONE
	int64_t newest_limited_ms; // time of the last sample that was limited (plausible.h); TIME_NONE
};

// Returns how many samples to make room for: two per interval, at least 64 (ticks may come earlier than the interval),
// at most POLICY_WINDOW_SAMPLES_MAX.
uint32_t window_samples_needed(const struct policy_window *config, int64_t interval_ms);

// Starts an empty window with room for `cap` samples at `samples`, in the same state block.
void window_init(struct window *w, struct window_sample *samples, uint32_t cap);
// Returns that room.
static inline struct window_sample *window_samples(const struct window *w)
{
	return (struct window_sample *)((uintptr_t)w + w->samples_offset);
}
// Drops samples that are not newer than now_ms - duration.
void window_evict(struct window *w, const struct policy_window *config, int64_t now_ms);
// Adds a sample with a finite value. A sample that was added before, or is not newer than the newest, is ignored. A
// time later than now_ms is treated as now_ms. Call window_evict(now_ms) first.
void window_push(struct window *w, const struct policy_window *config, int64_t time_ms, double value, int64_t now_ms);
// Returns whether the aggregate may be used: with min_samples, from that many samples on; Last, from one; otherwise
// once the history covers the whole duration, as far as samples one interval apart can. *ret_left_ms is the time until
// then at this interval, 0 when filled.
bool window_is_filled(const struct window *w, const struct policy_window *config, int64_t interval_ms, int64_t now_ms,
                      int64_t *ret_left_ms);
// Returns the aggregate of at least one sample; always finite. Percentiles interpolate linearly between ranks.
// Prometheus: promql/quantile.go, quantile().
double window_value(const struct window *w, const struct policy_window *config);
// Returns the i-th oldest sample, i < w->len.
const struct window_sample *window_at(const struct window *w, uint32_t i);

#endif
