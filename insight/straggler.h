// SPDX-License-Identifier: Apache-2.0
// Finds the ranks of a training job that have become slower, or faster, than they usually are. Pure: no clock, no I/O.
//
// The logarithm of a rank's value is modelled as job(t) + share(rank) + noise, a two-way table (Tukey, median polish).
// job(t) is the median over the ranks of value minus share, share(rank) the trailing median of value minus job(t). A
// checkpoint pause, a slower data set or a different step therefore moves job(t), and a permanently slower card its
// share; neither is a straggler. What remains is summed by two one-sided CUSUM charts per rank, against a change of
// STRAGGLER_EFFECT, with the log-likelihood ratio as increment. Their limit follows from the false alarms allowed
// (Lorden 1971: the mean time between false alarms is at least exp(limit)).
#ifndef GPUSCALE_INSIGHT_STRAGGLER_H
#define GPUSCALE_INSIGHT_STRAGGLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STRAGGLER_RANKS_MAX    4096
#define STRAGGLER_RANK_BYTES   128
#define STRAGGLER_BLOCK_MS     10000            // values of a rank within this time are one observation, their median
#define STRAGGLER_FORGET_MS    (30 * 60 * 1000) // without any value: a new job starts
#define STRAGGLER_EFFECT       1.15             // the change that the charts are built for, as a factor,
#define STRAGGLER_EFFECT_LEAST 1.12             // and where the noise is small; smaller changes are found later
#define STRAGGLER_FALSE_HOURS  100000.0         // job-hours per false alarm under the model

enum rank_event_kind { RANK_STRAGGLER, RANK_FASTER, RANK_RECOVERED, RANK_IMBALANCED, RANK_EVENT__COUNT };

struct rank_event {
	enum rank_event_kind kind;
	const char *rank;         // name owned by the detector
	int64_t time_ms;          // time of the value that caused it
	int64_t since_ms;         // when the change started; for RANK_RECOVERED, when the recovery did
	double ratio;             // rank's time / its usual share; RANK_IMBALANCED: / the job's median. Above 1: slower
	const char *const *alike; // n_alike further ranks that changed with it
	size_t n_alike;
};
typedef void rank_event_fn(void *arg, const struct rank_event *event);

extern const char *const rank_event_names[RANK_EVENT__COUNT]; // "Straggler", "Faster", "Recovered", "Imbalanced"

struct straggler;

// Creates the detector of one job, which reports to `fn`. more_is_slower: the values are times; else they are clocks,
// power or activity. Returns NULL when memory is exhausted.
struct straggler *straggler_new(bool more_is_slower, rank_event_fn *fn, void *arg);
void straggler_free(struct straggler *s);
// Starts the values of `time_ms`, which must not be smaller than before (false: it is, and its values must not be
// added). May report events.
bool straggler_at(struct straggler *s, int64_t time_ms);
// Adds the value of a rank at that time. Values that are not finite and above zero are missing values. Returns false
// for a name that is too long, for more than STRAGGLER_RANKS_MAX ranks, or when memory is exhausted.
bool straggler_add(struct straggler *s, const char *rank, double value);
// Ends the values of a time. May report events. Without it, the values count as soon as a later time starts.
void straggler_tick(struct straggler *s);

#endif
