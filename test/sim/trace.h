// SPDX-License-Identifier: Apache-2.0
// Demand over time for the simulator: read from a CSV file, or made from a seed.
#ifndef GPUSCALE_TEST_SIM_TRACE_H
#define GPUSCALE_TEST_SIM_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct err;

#define TRACE_BINS_MAX       200000
#define TRACE_FILE_BYTES_MAX (4 * 1024 * 1024)

struct trace_bin {
	double work;     // replica-seconds that arrive in this bin
	double requests; // weight of this bin in the share of late requests
};

struct trace {
	struct trace_bin *bins; // heap
	size_t n;
	double bin_s;
};

// A CSV file with a header line and bins of equal length: column `t_s` is the start of each bin in seconds, `work`
// names the columns to be summed ("context_tokens+generated_tokens"), divided by per_replica (work that one replica
// does in a second) to give replica-seconds; `requests` names the column of request counts. ERR_INPUT, ERR_NOT_FOUND,
// ERR_LIMIT.
int trace_read(const char *path, const char *work, const char *requests, double per_replica, struct trace *ret_trace,
               struct err *e);

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
