// SPDX-License-Identifier: Apache-2.0
// The allocator of variants as a filter, `gpuscale spread`: reads a decision in units, writes the replicas of each
// variant.
#ifndef GPUSCALE_POLICIES_TEST_SPREAD_LINE_H
#define GPUSCALE_POLICIES_TEST_SPREAD_LINE_H

#include <stddef.h>

struct buf;
struct err;

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
