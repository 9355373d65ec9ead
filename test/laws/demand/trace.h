// SPDX-License-Identifier: Apache-2.0
// Demand over time, generated from a seed.
#ifndef GPUSCALE_TEST_LAWS_DEMAND_TRACE_H
#define GPUSCALE_TEST_LAWS_DEMAND_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct err;

#define TRACE_BINS_MAX 200000

struct trace_bin {
	double work;     // replica-seconds that arrive in this bin
	double requests; // weight of this bin in the share of late requests
};

struct trace {
	struct trace_bin *bins; // heap
	size_t n;
	double bin_s;
};

// Requests of a Poisson process in bins of 5 s, each of log-normal work with a mean of 2 replica-seconds, at a rate
// that follows `kind`:
//   diurnal  one sine of 4 h between 2 and 14 replicas' worth
//   steps    a level between 2 and 20, new every 20 .. 60 min
//   bursts   4 replicas' worth, and bursts of 10 .. 20 that last 1 .. 4 min, about every 12 min
//   ramps    up from 3 to 18 in 5 min, an hour there, down in 20 min, half an hour at 3
//   spiky    as the code-completion trace: 5 on average, in batches of up to a minute with silence between
// Equal kind, seed and hours give equal traces. ERR_INPUT for an unknown kind.
int trace_make(const char *kind, uint64_t seed, double hours, struct trace *ret_trace, struct err *e);
extern const char *const trace_kinds[]; // NULL-terminated

void trace_done(struct trace *t);

#endif
