// SPDX-License-Identifier: Apache-2.0
// The cost of a run and the waits of its requests.
#ifndef GPUSCALE_REPLAY_SCORE_H
#define GPUSCALE_REPLAY_SCORE_H

#include <stdbool.h>
#include <stdint.h>

#define SCORE_WAIT_BUCKETS 1024

struct score {
	double replica_s;                            // paid
	double requests, late;                       // weights
	double token_gaps, gaps[SCORE_WAIT_BUCKETS]; // engines: times between tokens
	double full_s, full_work;                    // engines: time of replicas without a place for a waiting request,
	                                             // and their work in replica-seconds by the policy's figure
	double at_max_ms, counted_ms;                // at or above the largest number of replicas; time with data
	int32_t direction;                           // direction of the last scale: -1, 0, 1
	int32_t changes;                             // scales in the opposite direction of the scale before
	double waits[SCORE_WAIT_BUCKETS];            // weights, by wait
	bool has_waits;                              // false in open loop: the waits are unknown
};

void score_init(struct score *s, bool has_waits);
// Counts a step of step_ms in which `paid` replicas cost; is_at_max: the target could not grow further.
void score_add_step(struct score *s, int64_t step_ms, int32_t paid, bool is_at_max);
// Counts `weight` requests that wait wait_s; they are late above late_s.
void score_add_requests(struct score *s, double weight, double wait_s, double late_s);
// Engines: `n` tokens came gap_s after the ones before them.
void score_add_token_gap(struct score *s, double n, double gap_s);
void score_add_scale(struct score *s, int32_t from, int32_t to);

// The results; NaN without requests (late, p95) or without time (at max). p95 is exact to 2 %, and infinite when no
// replica was ready for that many requests.
double score_late_percent(const struct score *s);
double score_wait_quantile_s(const struct score *s, double quantile);
double score_token_gap_quantile_s(const struct score *s, double quantile);
double score_capacity(const struct score *s); // work of a full replica in replicas of the policy; 1: equal
double score_at_max_percent(const struct score *s);

// Whether at most late_percent of the requests are late; without requests nothing is late.
bool score_keeps(const struct score *s, double late_percent);
// Whether `s` is cheaper than `than` where both keep late_percent; else whether it keeps it, or is less late.
bool score_is_better(const struct score *s, const struct score *than, double late_percent);

#endif
