// SPDX-License-Identifier: Apache-2.0
// What the property programs share: a seeded generator, random policies, loads and clusters, and the report of a broken
// law. Each program prints its seed; PROP_SEED=N repeats a run, PROP_TICKS=N sets its length, PROP_LAW=NAME runs one
// law (a pattern of cmocka's filter).
#ifndef GPUSCALE_TEST_PROP_H
#define GPUSCALE_TEST_PROP_H

#include <stdbool.h>
#include <stdint.h>

#include "test/support/engine.h"

#define PROP_TICKS_A_TRACE 250 // then another random policy

struct prop_random {
	uint64_t s; // start with prop_seed() plus a number per law
};

int32_t prop_up_to(struct prop_random *r, int32_t n); // 0..n
bool prop_chance(struct prop_random *r, int32_t percent);

uint64_t prop_seed(void);
int64_t prop_ticks(void); // per law, 100,000 by default

// First thing in main: prints the seed and takes PROP_LAW.
void prop_begin(void);

// A random policy with n_signals signals, started; free with engine_done.
void prop_engine(struct prop_random *r, struct engine *e, int n_signals);
// A copy with a state of its own, of the same bytes; free with engine_done.
void prop_copy(struct engine *to, const struct engine *from);
// Shows a value; type Pods: one series each, never of more pods than there are.
void prop_show(struct engine *e, size_t i, double value, int32_t n_pods);
// Any value, now and then none, an error, NaN or an old one.
void prop_show_random(struct prop_random *r, struct engine *e, size_t i);
// To the next tick: the interval, now and then another time.
void prop_advance(struct prop_random *r, struct engine *e);
// The cluster follows, not always at once; sometimes the target is scaled by hand.
void prop_follow(struct prop_random *r, struct engine *e);

// All but the numbers of the sentences.
bool prop_same_decision(const struct decision *a, const struct decision *b);

// Ends the law with its name, the seed and the tick.
void prop_fail_at(const char *law, int64_t tick, const struct engine *e);

#endif
