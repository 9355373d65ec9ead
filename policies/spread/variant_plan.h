// SPDX-License-Identifier: Apache-2.0
// What to write to the targets of a policy with variants: the spread of its decision (spread.h), without ping-pong and
// without a gap. Pure, as spread() is.
//
// - Replicas of a variant that grew less than its start-up time ago do not move to another variant. Where fewer units
//   are needed than these replicas serve, they may go, and no other variant grows.
// - A variant shrinks only as far as the ready replicas of all variants serve the units: those that replace it start
//   first. The bound of the variant takes precedence.
#ifndef GPUSCALE_POLICIES_SPREAD_VARIANT_PLAN_H
#define GPUSCALE_POLICIES_SPREAD_VARIANT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/spread/spread.h"

#define VARIANT_NO_LIMIT SPREAD_REPLICAS_MAX // of fit

struct variant_now {
	double capacity, price; // of one replica: units, and the cost of an hour
	int32_t min, max;       // of the policy
	bool is_fixed;          // could not be read: keeps its replicas
	int32_t current;        // replicas that are requested
	int32_t ready;          // of these, the ready ones; -1: unknown, all are taken to be ready
	int32_t unschedulable;  // of these, those for which the cluster has no room: they move to another variant
	int32_t fit;            // further replicas for which it has room
	int64_t startup_ms;
	int64_t grown_ms; // when it last got more replicas, by the clock of now_ms
};

struct variant_order {
	int32_t replicas; // to write now
	int32_t share;    // of the spread; below `replicas` while its replacements start
	enum spread_reason reason;
};

// Returns the whole units that replicas[0..n) of the variants serve, rounded down, at most SPREAD_REPLICAS_MAX, and at
// least 1 unless they serve nothing: a scale of 0 has a meaning of its own.
int32_t variant_units(const struct variant_now *variants, const int32_t *replicas, size_t n);
// Plans for `units` and fills orders[0..n); n <= SPREAD_VARIANTS_MAX. *ret_total is that of the spread.
void variant_plan(const struct variant_now *variants, size_t n, double units, double switch_cost, int64_t now_ms,
                  struct variant_order *orders, struct spread_total *ret_total);

#endif
