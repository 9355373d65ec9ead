// SPDX-License-Identifier: Apache-2.0
// The line filters `gpuscale step`, `grant` and `spread`: the engine, the allocator of a pool and that of variants,
// each with a line of JSON in and a line of JSON out.
#ifndef GPUSCALE_POLICIES_TEST_FILTERS_H
#define GPUSCALE_POLICIES_TEST_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"

struct arena;
struct binding;
struct buf;
struct err;
struct grant;
struct step;

// ---- step ----

// One line of `gpuscale step`: an observation as JSON.
//   {"time": 15, "replicas": 2, "ready": 2, "pending": 0, "status": 2,
//    "signals": {"queue": 12, "kv": {"pod-a": 0.4, "pod-b": 0.7}, "rate": null, "lag": {"error": "timeout"}},
//    "capacity": {"fit": 2, "unschedulable": 3, "seconds": 320, "why": "4 Insufficient nvidia.com/gpu"},
//    "unhealthy": 1}
#define STEP_LINE_BYTES_MAX (1024 * 1024)
#define STEP_SERIES_MAX     10000 // series of one signal

struct step_line {
	int64_t time_ms; // since the epoch
	struct observation observation;
	struct obs_signal signals[POLICY_SIGNALS_MAX];
	// Why a query failed, for rendering; NULL = it succeeded; then why no more replicas fit.
	const char *details[POLICY_SIGNALS_MAX + 1];
};

// Reads text[0..len), a line without its end. time and replicas are required; ready that is absent or null is not
// known, pending is 0, status is replicas, and capacity and unhealthy are unknown. A signal that is absent or null has
// no data. Values are numbers, or the strings "NaN", "+Inf", "-Inf". What it finds lives in `a` and in *ret_line, which
// must not be copied (it points into itself). -1 and *e (ERR_INPUT, ERR_PROTOCOL, ERR_LIMIT, ERR_INTERNAL): not JSON,
// unknown, doubled or ill-typed members, with did-you-mean.
int step_line_parse(const struct policy *policy, const char *text, size_t len, struct arena *a,
                    struct step_line *ret_line, struct err *e);

// The engine as a filter: reads observations, writes decisions, and keeps the state.
// The caller keeps ownership of `binding`, which must outlive the result. Returns NULL when memory is exhausted.
struct step *step_new(const struct binding *binding);
void step_free(struct step *s);

// For filters, with a struct step: reads one observation as step_line_parse() does, decides, and appends the decision
// to `out` as one line of JSON, an item of a DecisionList. Replicas that differ from the previous line mean that the
// target was scaled: the engine records that scale at the time of the previous line, whose decision asked for it, as
// `run` does after its write. Returns 0. For an invalid line, or one with an earlier time than the last, it appends
// {"error": "..."} instead, does not change the state, and returns -1 with *e.
int step_answer(void *step, const char *line, size_t len, struct buf *out, struct err *e);

// ---- grant ----

// One line of `gpuscale grant`: the members of a pool as JSON.
//   {"time": 15, "spent": 1200, "runRate": 40, "members": [{"name": "chat", "asked": 12, "current": 4, "pending": 6,
//   "min": 1, "max": 16,
//    "gpusPerReplica": 4, "priority": 10, "weight": 1.5, "pricePerGPU": 2.5, "backfill": false}]}
#define GRANT_LINE_BYTES_MAX (4 * 1024 * 1024)
#define GRANT_LINE_SECONDS   15  // between two lines without a time
#define GRANT_NAME_BYTES_MAX 317 // namespace, slash and name

#define GRANT_MONEY_MAX 1e12

struct grant_line {
	struct pool_request request;
	struct pool_month month; // budget_micro 0: the pool has no monthly budget
	int64_t rate_micro;      // POOL_SPENT_UNKNOWN: not given
	const char **names;      // one per member
};

// Reads text[0..len), a line without its end, the `line_number`th (from 1). `members` is required, and `name` of each
// member. Defaults: asked: none, the member has no metrics and keeps what it has, except a backfill member, which may
// still have to yield; current 0; pending as current; min 0; max POOL_REPLICAS_MAX; maxMinReplicas,
// maxGPUs, gpusPerReplica, priority, weight, pricePerGPU and backfill as in the first entry of `pool` that matches the
// name, else all of min, the GPUs of the pool, 1, 0, 1, that of the budget and false; time: GRANT_LINE_SECONDS after
// the line before, from 0; spent, what the calendar month has cost until `time`, and runRate, its cost per hour
// (pool_month_projection()): unknown. They count for a pool with a monthly budget only. What it finds lives in `a`. -1
// and *e (ERR_INPUT, ERR_PROTOCOL, ERR_LIMIT): not JSON, unknown, doubled or ill-typed members; the message names the
// field.
int grant_line_parse(const struct gpu_pool *pool, const char *text, size_t len, unsigned long long line_number,
                     struct arena *a, struct grant_line *ret_line, struct err *e);

// The allocator of a pool as a filter.
// The caller keeps ownership of `pool`, which must outlive the result. With `explain`, each grant has a member
// "message". Returns NULL when memory is exhausted.
struct grant *grant_new(const struct gpu_pool *pool, bool explain);
void grant_free(struct grant *g);

// For filters, with a struct grant: reads one line as grant_line_parse() does and appends {"grants": [{"name",
// "replicas", "reason"}], "usedGPUs"} and a line end to `out`; for a pool with a monthly budget also "budgetPerHour",
// what this hour may cost, and with spent and runRate "monthEnd", the projection. Nothing is remembered but the number
// of lines. For an invalid line it appends {"error": "line N: ..."} instead and returns -1 with *e, which does not name
// the line.
int grant_answer(void *grant, const char *line, size_t len, struct buf *out, struct err *e);

// ---- spread ----

// The allocator of variants as a filter, `gpuscale spread`: reads a decision in units, writes the replicas of each
// variant.
#define SPREAD_LINE_BYTES_MAX (64 * 1024)
#define SPREAD_NAME_BYTES_MAX 317 // namespace, slash and name

// Reads one line, the `line_number`th (from 1), without its end:
//   {"units": 120, "switchCost": 0.5, "variants": [{"name": "h100", "capacity": 30, "price": 4, "current": 2,
//    "ready": 2, "min": 0, "max": 8, "fit": 6, "startupSeconds": 240}]}
// and appends {"variants": [{"name", "replicas", "reason"}], "units", "cost"} and a line end to `out`. Required: units,
// and name and capacity of each variant. Defaults: switchCost, price, current and min 0; max and fit
// SPREAD_REPLICAS_MAX; ready as current. ready and startupSeconds are checked and change nothing: they are the caller's
// to hold replicas that have just moved, by min and max. For an invalid line the function appends {"error": "line N:
// ..."} instead and returns -1 with *e (ERR_INPUT, ERR_PROTOCOL, ERR_LIMIT), which does not name the line.
int spread_line_answer(const char *line, size_t len, unsigned long long line_number, struct buf *out, struct err *e);

#endif
