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

// The names of the reasons as they are printed: "SpillOver".
extern const char *const spread_reason_names[SPREAD_REASON__COUNT];

// ---- the plan of a policy with variants ----

// What to write to the targets of a policy with variants: the spread of its decision, without ping-pong and
// without a gap.
//
// - Replicas of a variant that grew less than its start-up time ago do not move to another variant. Where fewer units
//   are needed than these replicas serve, they may go, and no other variant grows.
// - A variant shrinks only as far as the ready replicas of all variants serve the units: those that replace it start
//   first. The bound of the variant takes precedence.

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
