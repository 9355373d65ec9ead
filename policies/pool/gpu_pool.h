// SPDX-License-Identifier: Apache-2.0
// A GPUPool as plain data: pool_decode() fills it, and nothing changes it afterwards. The arena that was passed to
// pool_decode() owns strings and arrays.
#ifndef GPUSCALE_POLICIES_POOL_GPU_POOL_H
#define GPUSCALE_POLICIES_POOL_GPU_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct doc_node;
struct pool_member;
struct pool_request;

#define GPU_POOL_ENTRIES_MAX    256
#define GPU_POOL_RATIOS_MAX     64
#define GPU_POOL_LABELS_MAX     16 // labels of one entry
#define GPU_POOL_NAMESPACES_MAX 64 // namespaces of one entry

// A place in the file of the pool, for messages.
struct pool_place {
	int line, col;
};

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
	struct pool_place at; // in the file
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
	struct pool_place at, gpus_at, per_hour_at, per_month_at;
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
// Millionths of an amount of money, and thousandths of a number, rounded.
int64_t gpu_pool_micro(double money);
int64_t gpu_pool_milli(double number);

// ---- the spending ----

// The spending of a pool: its monthly budget and its record. How much of the budget may be spent in this hour, and what
// the month will have cost.
//
// The budget is released along a straight line: one thirtieth on the first day of the month at once, the rest evenly
// until its end. Spending that lags behind the line (nights, weekends) is available later, and peaks may run ahead of
// the mean by a day's worth. The minimums of the members are set aside until the end of the month. The cap leads the
// spending back to the line within an hour:
//   budget      = 0.999 * perMonth: a thousandth is kept for scale-downs that are carried out late
//   released(t) = min(budget * (1/30 + 29/30 * elapsed(t) / month), budget - minimums * rest(t))
//   cap         = (released(t + h) - spent) / h, h = 1 hour, or the rest of the month when that is shorter
// released() is concave, so spending at most the cap for at most an hour stays below it: the month stays within
// its budget whatever the members ask for, as long as the minimums alone do.

#define POOL_SPENT_UNKNOWN (-1)

struct pool_month {
	int64_t start_ms, end_ms; // bounds of the calendar month, UTC
	int64_t now_ms;
	int64_t budget_micro; // budget of the month, in millionths of the currency, 0..POOL_COST_MAX_MICRO
	int64_t spent_micro;  // since start_ms, 0..POOL_COST_MAX_MICRO; or POOL_SPENT_UNKNOWN
	int64_t since_ms;     // when the record of spent_micro starts; before that, the spending is taken to be on the
	                      // line. Up to start_ms: the record is complete
};

// Sets start_ms, end_ms and now_ms of *m for the month of `now_ms`, in ms since the epoch.
void pool_month_at(struct pool_month *m, int64_t now_ms);
// Lowers the hourly budget of *q, or sets one, to what the month allows; call before pool_allocate(), which then gives
// POOL_BUDGET_LIMITED as the reason. Never below the minimums of the members, which take precedence. While the spending
// is unknown, it is taken to be on the line. Returns the cap in millionths per hour.
int64_t pool_month_limit(struct pool_request *q, const struct pool_month *m);
// The cost of the month at its end: spent + rate * rest, in millionths; POOL_SPENT_UNKNOWN while the spending
// is unknown. rate_micro: the present run rate per hour. Take the mean of the last seven days, or of the time since the
// pool exists when that is shorter: a shorter mean takes a weekend for the whole month. A trend is not predicted.
int64_t pool_month_projection(const struct pool_month *m, int64_t rate_micro);

// ---- the record of the spending ----

// The spending of a pool: the sum of its run rate over time, by calendar month and by day, both UTC. Plain data, so
// that it can be stored and continued by another process: no time is counted twice, because the record says until when
// it was counted.

#define POOL_LEDGER_DAYS     8       // the current day and the seven before it
#define POOL_LEDGER_GAP_MS   60000   // after a longer time without a count, the pool was not observed
#define POOL_LEDGER_AHEAD_MS 3600000 // a record that was counted until later than that after now is invalid

// Amounts are in millionths of the currency. All zero without a record.
struct pool_ledger {
	int64_t since_ms, until_ms;         // the time that was counted, in ms since the epoch
	double rate_micro;                  // per hour, at until_ms
	double spent_micro;                 // in the month of until_ms, as far as it was recorded
	double assumed_micro;               // the part of spent_micro assumed for gaps
	double day_micro[POOL_LEDGER_DAYS]; // by day, that of until_ms first
};

// Counts the time from until_ms to now_ms at the run rate that was in use, and notes the rate that is in use from
// now on. A time of more than POOL_LEDGER_GAP_MS is a gap: it counts at the larger of the two rates, and as assumed.
// Starts the record when there is none, or an invalid one. A clock that was set back counts nothing until it has caught
// up.
void pool_ledger_count(struct pool_ledger *l, int64_t now_ms, double rate_micro);
// The mean run rate per hour of the last seven days, or of the age of the record when that is shorter; in the first
// hour the present rate.
double pool_ledger_rate_micro(const struct pool_ledger *l);

// Sets the budget of the pool in a request that is otherwise filled: `per_hour`, lowered to what `per_month` allows by
// the rules above. spent_micro: in the calendar month (UTC) in which now_ms lies, from since_ms on (0: from its start),
// or POOL_SPENT_UNKNOWN. Returns the month with its times and amounts; its budget_micro is 0 without a monthly budget.
struct pool_month gpu_pool_budget(const struct gpu_pool *pool, struct pool_request *q, int64_t now_ms,
                                  int64_t spent_micro, int64_t since_ms);

#endif
