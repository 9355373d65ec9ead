// SPDX-License-Identifier: Apache-2.0
// How long replicas take from their order to being ready, and which ones were ordered lately. Lives inside the flat
// state. Orders are what the shell recorded, and what the scale shows that nobody recorded. An order has started when
// the replicas that lack to spec are fewer than the later orders explain: counts are all it needs, no pod is followed.
#ifndef GPUSCALE_POLICIES_STARTUP_H
#define GPUSCALE_POLICIES_STARTUP_H

#include <stdbool.h>
#include <stdint.h>

struct policy;

#define STARTUP_ORDERS_MAX 16 // kept apart; beyond, the two oldest become one
#define STARTUP_STARTS_MAX 9  // start-up times remembered: their median is what was learnt

struct startup_order {
	int64_t time_ms;
	int32_t replicas; // ordered then, and not cancelled since
	int32_t waiting;  // of them not seen ready yet
};

struct startup {
	struct startup_order orders[STARTUP_ORDERS_MAX]; // oldest first
	int64_t starts_ms[STARTUP_STARTS_MAX];           // ring
	uint32_t n_orders, n_starts, next_start;
	int32_t seen_spec; // at the last tick; -1 = never
	int32_t fresh;     // replicas recorded since the last tick
	uint32_t unused;
};

void startup_init(struct startup *s);
// The shell ordered n more replicas (n > 0).
void startup_record_order(struct startup *s, int64_t time_ms, int32_t n);
// A replica took start_ms from its order to being ready.
void startup_record_start(struct startup *s, int64_t start_ms);
// One tick: spec as observed, ready -1 when not known. True when a start-up time was learnt: the newest one.
bool startup_observe(struct startup *s, const struct policy *policy, int64_t now_ms, int32_t spec, int32_t ready);
// What this policy goes by: `startup.seconds`, else the median of the starts seen (of an even number, the longer of the
// middle two); -1 while nothing is known. ms.
int64_t startup_ms(const struct startup *s, const struct policy *policy);
// Replicas ordered less than startup_ms() ago: capacity to come. 0 while that is not known.
int32_t startup_coming(const struct startup *s, const struct policy *policy, int64_t now_ms);

#endif
