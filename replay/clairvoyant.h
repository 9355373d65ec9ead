// SPDX-License-Identifier: Apache-2.0
// The clairvoyant bound: the cheapest schedule of replicas for a demand that is known in advance.
#ifndef GPUSCALE_REPLAY_CLAIRVOYANT_H
#define GPUSCALE_REPLAY_CLAIRVOYANT_H

#include <stdbool.h>
#include <stdint.h>

struct closed_loop;
struct score;

// Searches the cheapest schedule with at most late_ratio (0 .. 1) of the requests late, and plays it in the simulator:
// the score is reached, not only estimated. Dynamic programming over (replicas, backlog), in which a further replica
// costs its start-up time as well, with a Lagrange multiplier on late requests. The schedule is exact up to the grid of
// the program, so that a true optimum may be a few percent cheaper. When even the least late schedule misses
// late_ratio, one that is late alike is the result. The start-up time is the mean of those that are drawn from.
// `known` is the score of the best schedule that is known otherwise, or NULL. When the search finds none that is better
// (score_is_better; where neither keeps the objective, clearly), *ret_score is a copy, *ret_is_known is true, and no
// step is reported. Returns 0, or -1 when memory is exhausted.
int clairvoyant_run(const struct closed_loop *loop, int32_t min, int32_t max, double late_ratio,
                    const struct score *known, struct score *ret_score, bool *ret_is_known);

#endif
