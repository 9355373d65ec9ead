// SPDX-License-Identifier: Apache-2.0
// The demand of a recording as equal steps of simulated time.
#ifndef GPUSCALE_REPLAY_DEMAND_H
#define GPUSCALE_REPLAY_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct recording;

#define DEMAND_GAPS_MAX       16 // kept with their times; more are only counted
#define DEMAND_INTERPOLATE_MS 60000
#define DEMAND_REPLICAS_MAX   1e9 // largest demand, in replicas' worth

struct demand_gap {
	int64_t from_ms, to_ms;
};

struct demand {
	double *work;   // replica-seconds that arrive in each step; NaN: no data; heap
	double *weight; // requests of each step in the share of late ones; NULL: the work; heap
	size_t n;
	int64_t step_ms;
	int64_t start_ms; // start of the first step
	double mean;      // replicas that the demand keeps busy on average, over the steps with data
	double total;     // replica-seconds
	int64_t known_ms; // time with data
	bool interpolated;
	struct demand_gap gaps[DEMAND_GAPS_MAX];
	size_t n_gaps;
};

// Converts column `column` (replicas' worth of arriving work, divided by per_replica) into steps: of 1 s up to a day,
// 5 s up to 100 days, else 15 s. A row applies until the next one; rows more than DEMAND_INTERPOLATE_MS apart are
// joined by straight lines. A cell without data, and a time without rows, is a gap. `requests` is the column that
// weighs the late share, -1: the work. Returns 0, or -1 and *e (ERR_INPUT for a negative value, with FILE:LINE, and for
// a column without any data; ERR_LIMIT; ERR_INTERNAL). The caller calls demand_done() in both cases.
int demand_from_recording(const struct recording *r, int column, int requests, double per_replica, const char *file,
                          struct demand *ret, struct err *e);
void demand_done(struct demand *d);

static inline double demand_weight(const struct demand *d, size_t i)
{
	return d->weight ? d->weight[i] : d->work[i];
}

#endif
