// SPDX-License-Identifier: Apache-2.0
// What one more replica would add, by Amdahl's law fitted to the throughput that was measured at several replica
// counts. For guards.minMarginalGain. Private to policies/engine.
#ifndef GPUSCALE_POLICIES_ENGINE_MARGINAL_GAIN_H
#define GPUSCALE_POLICIES_ENGINE_MARGINAL_GAIN_H

#include <stdbool.h>
#include <stdint.h>

#define MARGINAL_GAIN_COUNTS_MAX 16 // replica counts that are remembered
#define MARGINAL_GAIN_COUNTS_MIN 3  // replica counts that a fit needs
#define MARGINAL_GAIN_FACTOR     2

// The throughput at full load with this many replicas.
struct gain_point {
	int32_t replicas;
	uint32_t n;        // observations, at most UINT32_MAX
	double throughput; // in the unit of the signal; > 0
	uint64_t newest;   // number of the newest observation
};

// Flat, without padding, so that it can be part of the state block. {0} is the initial state.
struct marginal_gain {
	uint64_t n_observed;   // observations of all counts so far
	uint64_t steady_ticks; // ticks in a row with `steady` replicas, all of them ready
	uint32_t n_doubtful;   // observations in a row, with `doubted` replicas, that were too far from what is known
	int32_t doubted;       // the replicas of the newest tick
	int32_t steady;        // 0: not all replicas were ready at the last tick
	uint32_t n_points;     // used entries of `points`, in no order
	struct gain_point points[MARGINAL_GAIN_COUNTS_MAX];
};
_Static_assert(sizeof(struct gain_point) == 4 + 4 + 8 + 8, "no padding");
_Static_assert(sizeof(struct marginal_gain) ==
                       8 + 8 + 4 + 4 + 4 + 4 + MARGINAL_GAIN_COUNTS_MAX * sizeof(struct gain_point),
               "no padding");

// The fit: with n replicas the throughput is one * n / (1 + serial * (n - 1)).
struct gain_fit {
	double serial;  // Amdahl's serial fraction less its standard error; >= 0
	int32_t usable; // replica counts with enough observations
};

// Counts a tick at which `spec` replicas were requested and `ready` were ready (-1 = unknown).
void marginal_gain_tick(struct marginal_gain *g, int32_t spec, int32_t ready);
// Adds one observation of the throughput of g->steady > 0 replicas at full load; values that are not above 0 are
// ignored. Of each count a high expectile is kept: a single outlier moves it by a fifth, lower values by a fiftieth. A
// value more than MARGINAL_GAIN_FACTOR times above or below the expectile is ignored, until `believed_after` of them in
// a row, at this count, show that the expectile is wrong: then the count starts again. A count of fewer than 3
// observations starts again at once; what the next known counts on both sides contradict is ignored as long.
void marginal_gain_observe(struct marginal_gain *g, double throughput, uint64_t believed_after);
// Fits the curve by least squares of n / throughput over n - 1. Returns false while there are fewer than
// MARGINAL_GAIN_COUNTS_MIN counts of at least 3 observations among the last 4,096, the largest of them is less than
// one and a half times the smallest, or two of them contradict each other: beyond MARGINAL_GAIN_FACTOR, no curve
// between flat and linear has both. ret->usable is set in any case.
bool marginal_gain_fit(const struct marginal_gain *g, struct gain_fit *ret);
// Returns what replica number n >= 1 adds to n - 1, in replicas: 1 for the first, less for each that follows. With
// S(n) = n / (1 + serial * (n - 1)) it is S(n) - S(n - 1).
double marginal_gain_of(double serial, int32_t n);
// Returns the largest n from 1 to `most` whose replica adds at least `bound` (0..1); 0 when not even the first does.
int32_t marginal_gain_limit(double serial, double bound, int32_t most);

#endif
