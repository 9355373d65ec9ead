// SPDX-License-Identifier: Apache-2.0
// Tables of `gpuscale plan`: a row per decision, then the trace of each.
#ifndef GPUSCALE_CLI_RUN_PLAN_RENDER_H
#define GPUSCALE_CLI_RUN_PLAN_RENDER_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct decided;

// Appends the tables of n decisions. `wide`: with ready replicas, the range and the message of each decision.
void plan_render(struct buf *out, const struct decided *items, size_t n, bool wide);

#endif
