// SPDX-License-Identifier: Apache-2.0
// What the replicas of a run, as units of capacity, cost when they are spread over variants, with the moves between
// them; and what they would cost an autoscaler for which all replicas are alike.
#ifndef GPUSCALE_REPLAY_VARIANT_COST_H
#define GPUSCALE_REPLAY_VARIANT_COST_H

#include <stddef.h>
#include <stdint.h>

#include "policies/schema/binding.h"
#include "policies/spread/spread.h"

struct loop_step;

#define VARIANT_STARTS_MAX 64 // steps with starting replicas that are kept apart; then they are ready together

struct variant_starts {
	int64_t ready_ms[VARIANT_STARTS_MAX]; // oldest first
	int32_t replicas[VARIANT_STARTS_MAX];
	size_t n;
};

struct variant_cost {
	const struct scale_variants *variants; // not owned
	struct variant_now now[VARIANTS_MAX];
	struct variant_starts starts[VARIANTS_MAX];
	double replica_s[VARIANTS_MAX];
	double cost, alike_cost; // in the currency of the prices
	double switches;         // replicas that were started
	double short_s;          // time in which all variants together did not serve the units
};

// prices: of a replica and hour, one per variant. startup_ms: of a variant that does not state its own.
void variant_cost_init(struct variant_cost *c, const struct scale_variants *variants, const double *prices,
                       int64_t startup_ms);
// Adds a step, in the order of time; its replicas are units. An autoscaler for which all replicas are alike has as many
// as serve the units if each serves as much as the weakest one, the cheapest ones first: it is never later.
void variant_cost_add(struct variant_cost *c, const struct loop_step *step);

#endif
