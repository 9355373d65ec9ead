// SPDX-License-Identifier: Apache-2.0
// The cost of GPU time, exactly: amounts are integers, and rounding to cents loses nothing. Whatever the rows stand
// for, their costs add up to allocated GPU-seconds times price, rounded to the cent.
#ifndef GPUSCALE_INSIGHT_GPU_COST_H
#define GPUSCALE_INSIGHT_GPU_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash_table.h"

struct err;
struct policy;
struct price_book;
struct price_discount;
struct scale_target;

// How much of each model of GPU each namespace, pod or label used over a period, gathered from responses of Prometheus.
#define GPU_USE_ROWS_MAX  1000000
#define GPU_USE_BYTES_MAX ((size_t)512 * 1024 * 1024)

// The sum of a measure over the minutes of a period, in thousandths.
enum gpu_measure {
	GPU_ALLOCATED, // GPU-seconds: the share of the GPU that counts for the pod
	GPU_IDLE,      // GPU-seconds in which nothing ran
	GPU_FAKE,      // GPU-seconds that were busy by GPU_UTIL and idle by SM_ACTIVE
	GPU_MEASURED,  // GPU-seconds with a utilization
	GPU_ENERGY,    // watt-seconds
	GPU_MEASURE__COUNT
};

struct gpu_use {
	const char *model;
	const char *namespace_name; // "": the GPUs without a pod
	const char *part;           // part of the namespace: a pod, or the value of a label; "": the whole, or the rest
	int64_t milli[GPU_MEASURE__COUNT];
	UT_hash_handle hh; // of the set, by the three names
};

struct gpu_use_set {
	struct gpu_use *rows; // hash table; the others follow as hh.next, in the order in which they were added
	struct arena names;   // memory of rows and names
	struct buf key;       // of the row that is searched
};

void gpu_use_init(struct gpu_use_set *s);
void gpu_use_done(struct gpu_use_set *s);
// Adds `value` to a measure of a row, which is created with copies of the names. -1 and *e: ERR_LIMIT for more than
// GPU_USE_ROWS_MAX rows, ERR_PROTOCOL for a value that is not finite, negative or absurd, ERR_INTERNAL.
int gpu_use_add(struct gpu_use_set *s, const char *model, const char *namespace_name, const char *part,
                enum gpu_measure measure, double value, struct err *e);
// Makes the measures consistent, once all are added: idle and fake are parts of measured, which is a part of allocated.
// Sampled at slightly different series, they may differ by a rounding.
void gpu_use_close(struct gpu_use_set *s);

// Millionths of the currency per hour times milliseconds; for electricity, millionths per kWh times joules.
__extension__ typedef __int128 gpu_money;

#define GPU_COST_UNKNOWN INT64_MIN

enum gpu_amount { COST_TOTAL, COST_IDLE, COST_FAKE, COST_ELECTRICITY, COST__COUNT };

struct gpu_cost_row {
	const char *key; // key given by the caller
	int64_t milli[GPU_MEASURE__COUNT];
	gpu_money exact[COST__COUNT];
	int64_t cents[COST__COUNT];
	int64_t saved_cents; // gpu_cost_set_saved(); GPU_COST_UNKNOWN: not known
};

// GPU time of a model that the book has no price for.
struct gpu_unpriced {
	const char *model; // model given by the caller
	int64_t milli;     // allocated
};

struct gpu_cost {
	const struct price_book *book;
	const struct price_discount *discount; // NULL: none
	struct gpu_cost_row *rows;
	size_t n, cap;
	struct gpu_cost_row total;       // sum of the rows
	struct gpu_cost_row unallocated; // apart from them: GPUs without a pod
	struct gpu_unpriced *unpriced;
	size_t n_unpriced, cap_unpriced;
	bool failed; // memory is exhausted
};

// The book, the discount, keys and names of models must outlive *c.
void gpu_cost_init(struct gpu_cost *c, const struct price_book *book, const struct price_discount *discount);
void gpu_cost_done(struct gpu_cost *c);
// Adds the use of one model under `key`, or NULL: to the GPUs without a pod. Rows of equal keys are joined by
// gpu_cost_close().
void gpu_cost_add(struct gpu_cost *c, const char *key, const struct gpu_use *use);
// Joins rows of equal keys, sorts them by cost, the largest first, and computes the cents: each total is rounded to the
// cent, halves up, and the cents of the rows are their whole cents plus one cent for the rows with the largest
// remainders, so that they add up to it (the largest-remainder method). Look at c->failed.
void gpu_cost_close(struct gpu_cost *c);
// Sets what the row saved against `most_milli` thousandths of a GPU-second, at the mean price of its GPUs; negative: it
// used more. Call after gpu_cost_close().
void gpu_cost_set_saved(struct gpu_cost_row *row, int64_t most_milli);

// Returns whether a pod of this name belongs to the target, by the names that workloads give to their pods:
// TARGET-HASH-SUFFIX for a Deployment, TARGET-NUMBER for a StatefulSet, TARGET-.. for other kinds.
bool pod_is_of_target(const struct scale_target *t, const char *pod);
// Returns the policy that scales a pod: the policy in the namespace of the pod whose target has a pod of this name, as
// pod_is_of_target(). Of several, the one with the longest name of a target. NULL: none. Each policy is that of
// a policy_ref (policies/load/policy_ref.h).
const struct policy *pod_policy_find(const struct policy *const *policies, size_t n, const char *namespace_name,
                                     const char *pod);

#endif
