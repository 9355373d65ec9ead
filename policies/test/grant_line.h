// SPDX-License-Identifier: Apache-2.0
// One line of `gpuscale grant`: the members of a pool as JSON.
//   {"time": 15, "spent": 1200, "runRate": 40, "members": [{"name": "chat", "asked": 12, "current": 4, "pending": 6,
//   "min": 1, "max": 16,
//    "gpusPerReplica": 4, "priority": 10, "weight": 1.5, "pricePerGPU": 2.5, "backfill": false}]}
#ifndef GPUSCALE_POLICIES_TEST_GRANT_LINE_H
#define GPUSCALE_POLICIES_TEST_GRANT_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"

struct arena;
struct buf;
struct err;
struct gpu_pool;
struct grant;

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

// ---- the allocator of a pool as a filter ----

// The caller keeps ownership of `pool`, which must outlive the result. With `explain`, each grant has a member
// "message". Returns NULL when memory is exhausted.
struct grant *grant_new(const struct gpu_pool *pool, bool explain);
void grant_free(struct grant *g);

// Reads one line as grant_line_parse() does and appends {"grants": [{"name", "replicas", "reason"}], "usedGPUs"} and a
// line end to `out`; for a pool with a monthly budget also "budgetPerHour", what this hour may cost, and with spent and
// runRate "monthEnd", the projection. Nothing is remembered but the number of lines. For an invalid line it appends
// {"error": "line N: ..."} instead and returns -1 with *e, which does not name the line.
int grant_answer(struct grant *g, const char *line, size_t len, struct buf *out, struct err *e);

#endif
