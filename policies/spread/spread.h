// SPDX-License-Identifier: Apache-2.0
// Spreads one decision over variants: targets that serve the same requests on different GPUs. Pure: no clock, no
// memory, no I/O (`make purity`).
//
// The spread with n[i] replicas of variant i minimizes
//   sum of price[i] * n[i] + switch_cost * max(0, n[i] - current[i])
// subject to
//   sum of capacity[i] * n[i] >= units   and   min(min[i], most[i]) <= n[i] <= most[i],
//   most[i] = min(max[i], current[i] + fit[i]).
// Of spreads that cost the same, the one that moves the fewest replicas wins, so a tie never moves a replica.
// When all variants together cannot serve `units`, every variant with a capacity gets its most.
//
// Method: branch and bound over the variants. The cost of a variant is convex in n, so the relaxation to fractions is
// solved by filling the segments (replicas up to `current`, replicas beyond it) in the order of their cost per unit,
// and the bound is convex in each n: a search to either side of the relaxed value stops at the first value whose bound
// is not better than the best spread found (bounded knapsack; Kellerer, Pferschy, Pisinger, Knapsack Problems, 7.1).
#ifndef GPUSCALE_POLICIES_SPREAD_SPREAD_H
#define GPUSCALE_POLICIES_SPREAD_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPREAD_VARIANTS_MAX 16
#define SPREAD_REPLICAS_MAX 1000000
#define SPREAD_NUMBER_MAX   1e12 // largest capacity, price, switch cost and number of units

enum spread_reason {
	SPREAD_KEPT,             // the replicas that exist stay
	SPREAD_CHEAPEST,         // grows, and no cheaper variant could
	SPREAD_SPILL_OVER,       // grows, because every cheaper variant is at its most
	SPREAD_REDUCED,          // shrinks: fewer replicas are needed, or a cheaper variant takes over
	SPREAD_AT_MIN,           // would shrink further
	SPREAD_AT_MAX,           // may not grow
	SPREAD_CAPACITY_LIMITED, // may grow, but no more replicas fit into the cluster
	SPREAD_REASON__COUNT
};

struct spread_variant {
	double capacity; // units that one replica serves; above 0
	double price;    // of one replica for an hour, in any currency; 0 or more
	int32_t current; // replicas that exist
	int32_t min, max;
	int32_t fit; // further replicas for which the cluster has room
};

struct spread_request {
	const struct spread_variant *variants; // n_variants <= SPREAD_VARIANTS_MAX
	size_t n_variants;
	double units;
	double switch_cost; // of one more replica; 0 or more, in the currency of the prices
};

struct spread_share {
	int32_t replicas;
	enum spread_reason reason;
};

struct spread_total {
	double units;  // what the shares serve together
	double cost;   // what was minimized: prices and switch costs
	bool is_short; // the variants cannot serve the requested units
	bool is_exact; // false when the search ended at its limit of work: a cheaper spread may exist (prop_spread)
};

// Fills shares[0..n_variants) and *ret_total. Bounded in time: at most about 10 ms, under 100 us for up to 8 variants
// as a rule (`make bench`, spread_us).
void spread(const struct spread_request *request, struct spread_share *shares, struct spread_total *ret_total);

// The name of a reason as it is printed: "SpillOver".
const char *spread_reason_name(enum spread_reason reason);

#endif
