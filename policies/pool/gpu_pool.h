// SPDX-License-Identifier: Apache-2.0
// A GPUPool as plain data: pool_decode() fills it, and nothing changes it afterwards. The arena that was passed to
// pool_decode() owns strings and arrays.
#ifndef GPUSCALE_POLICIES_POOL_GPU_POOL_H
#define GPUSCALE_POLICIES_POOL_GPU_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/pool/pool_month.h"

struct doc_node;
struct pool_member;
struct pool_request;

#define GPU_POOL_ENTRIES_MAX    256
#define GPU_POOL_RATIOS_MAX     64
#define GPU_POOL_LABELS_MAX     16 // labels of one entry
#define GPU_POOL_NAMESPACES_MAX 64 // namespaces of one entry

// One entry of spec.members: the policies that it claims, and what it gives to each of them.
struct gpu_pool_entry {
	// One of the two is set: the namespaces of the policies. An entry without any matches no policy.
	const char *namespace_name; // "" or NULL: not set
	const char **namespaces;
	size_t n_namespaces;
	const char *name;    // "" = every policy
	const char **labels; // "name=value", all of which the policy has
	size_t n_labels;
	int32_t gpus_per_replica, priority;
	int32_t max_min_replicas; // the part of minReplicas that is guaranteed
	int32_t max_gpus;         // limit of each member; 0 = that of the pool
	double weight;
	double price; // price of one GPU and hour; 0 = that of the budget
	bool backfill;
	int line, col; // in the file
};

struct gpu_pool_ratio {
	const char *of, *to; // namespace/name of two policies
	double min, max;     // replicas of `of` per replica of `to`
};

struct gpu_pool {
	int api_version, kind;
	const char *name;
	const struct doc_node *annotations, *labels; // for the validate hook only
	int32_t gpus;
	bool has_budget, has_per_hour, has_per_month;
	double per_hour, per_month, price; // money per hour, per calendar month; of one GPU and hour
	int64_t turn_every_ms;
	struct gpu_pool_entry *entries;
	size_t n_entries;
	struct gpu_pool_ratio *ratios;
	size_t n_ratios;
	// where it was read from, for messages
	const char *file;
	int line, col, gpus_line, gpus_col, per_hour_line, per_hour_col, per_month_line, per_month_col;
};

// Whether the entry names a namespace at all.
bool gpu_pool_entry_has_namespace(const struct gpu_pool_entry *e);
// Whether the entry names the namespace.
bool gpu_pool_entry_names(const struct gpu_pool_entry *e, const char *namespace_name);
// Whether the entry matches the policy. label_lines: as in struct policy. With `namespace_name` NULL the namespace is
// not known: an entry matches that names `name`. With label_lines NULL the labels are not known: the labels of the
// entry do not count.
bool gpu_pool_entry_matches(const struct gpu_pool_entry *e, const char *namespace_name, const char *name,
                            const char *label_lines);
// The entry that claims the policy: the first that matches. NULL = the policy is not a member of the pool.
const struct gpu_pool_entry *gpu_pool_claims(const struct gpu_pool *pool, const char *namespace_name, const char *name,
                                             const char *label_lines);
// Sets what the entry gives to a member: GPUs per replica, priority, weight, price, backfill, and what it may claim
// (`guaranteed`, `most`).
void gpu_pool_apply(const struct gpu_pool *pool, const struct gpu_pool_entry *entry, struct pool_member *m);
// Whole replicas of `gpus_per_replica` GPUs that a member may have with at most max_gpus of the pool (0: all of them).
int32_t gpu_pool_most(const struct gpu_pool *pool, int32_t max_gpus, int32_t gpus_per_replica);
// Sets the budget of the pool in a request that is otherwise filled: `per_hour`, lowered to what `per_month` allows by
// pool_month.h. spent_micro: in the calendar month (UTC) in which now_ms lies, from since_ms on (0: from its start), or
// POOL_SPENT_UNKNOWN. Returns the month with its times and amounts; its budget_micro is 0 without a monthly budget.
struct pool_month gpu_pool_budget(const struct gpu_pool *pool, struct pool_request *q, int64_t now_ms,
                                  int64_t spent_micro, int64_t since_ms);
// Millionths of an amount of money, and thousandths of a number, rounded.
int64_t gpu_pool_micro(double money);
int64_t gpu_pool_milli(double number);

#endif
