// SPDX-License-Identifier: Apache-2.0
// The allocator of a pool as a filter: reads the members, writes the grants.
#ifndef GPUSCALE_POLICIES_TEST_GRANT_H
#define GPUSCALE_POLICIES_TEST_GRANT_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;
struct gpu_pool;
struct grant;

// The caller keeps ownership of `pool`, which must outlive the result. With `explain`, each grant has a member
// "message". Returns NULL when memory is exhausted.
struct grant *grant_new(const struct gpu_pool *pool, bool explain);
void grant_free(struct grant *g);

// Reads one line (grant_line.h) and appends {"grants": [{"name", "replicas", "reason"}], "usedGPUs"} and a line end to
// `out`; for a pool with a monthly budget also "budgetPerHour", what this hour may cost, and with spent and runRate
// "monthEnd", the projection. Nothing is remembered but the number of lines. For an invalid line it appends {"error":
// "line N: ..."} instead and returns -1 with *e, which does not name the line.
int grant_answer(struct grant *g, const char *line, size_t len, struct buf *out, struct err *e);

#endif
