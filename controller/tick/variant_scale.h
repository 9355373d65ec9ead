// SPDX-License-Identifier: Apache-2.0
// The targets of a policy with variants, as one scale in units of capacity: their observations are summed, and the
// decision is spread over them (policies/spread/spread.h) and written target by target. A target that cannot be
// read keeps the replicas that it had at last; one that does not exist has none.
#ifndef GPUSCALE_CONTROLLER_TICK_VARIANT_SCALE_H
#define GPUSCALE_CONTROLLER_TICK_VARIANT_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/tick/observe.h"

struct binding;
struct decided_variant;
struct decision;
struct err;
struct log;
struct price_book;
struct variant_scale;

#define VARIANT_STARTUP_MS 300000 // while no start-up time is given or learnt

// Returns NULL for a binding without variants. `sources`, `log` (NULL: none) and `binding` must outlive it.
struct variant_scale *variant_scale_new(const struct observe_sources *sources, struct log *log,
                                        const struct binding *binding);
// Must be idle. NULL is fine.
void variant_scale_free(struct variant_scale *v);
// Acquires the targets from the stores, unless they are acquired already. Call at every tick.
void variant_scale_acquire(struct variant_scale *v);

// Reads all targets as of now_ms; bypass_cache as in struct observation_call. Calls done exactly once, maybe before
// this returns; error: no target could be read and none is known from before; else NULL.
void variant_scale_observe(struct variant_scale *v, int64_t now_ms, bool bypass_cache,
                           void (*done)(void *arg, const struct err *error), void *arg);
// Returns the present scale in units.
int32_t variant_scale_units(const struct variant_scale *v);
// Sets what observation `o` says about the targets, in units: ready and pending replicas, and what fits now.
void variant_scale_fill(struct variant_scale *v, struct observation *o);
// Spreads `d`, the decision about that observation, over the targets, and changes it to the units that they then serve.
// prices: NULL: none. startup_ms: as learnt by the policy; -1: not known. Returns whether anything is to be written:
// d->write, or replicas that move between the targets.
bool variant_scale_plan(struct variant_scale *v, const struct price_book *prices, int64_t startup_ms, int64_t now_ms,
                        struct decision *d);
// Releases what the last observation holds. Call at the end of a tick.
void variant_scale_release(struct variant_scale *v);

// Notes that the plan is about to be written, or, with is_sent false, that it never was.
void variant_scale_order(struct variant_scale *v, bool is_sent);
// PATCHes the targets of the plan one after the other: first those that grow, then, unless one of these failed, those
// that shrink. may_write is asked before each. Calls done exactly once, maybe before this returns; units: what the
// targets serve then, `units_to` if all were written; error: the first one, NULL: none.
struct variant_write {
	int (*may_write)(void *arg, struct err *e);
	void (*done)(void *arg, int32_t units, const struct err *error);
	void *arg;
	int32_t units_to;
	int64_t now_ms;
};
void variant_scale_write(struct variant_scale *v, const struct variant_write *write);

// Returns one row per variant, as of the last plan, valid until the next one; *ret_n: 0 before the first.
const struct decided_variant *variant_scale_rows(const struct variant_scale *v, size_t *ret_n);

#endif
