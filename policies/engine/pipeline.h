// SPDX-License-Identifier: Apache-2.0
// The pipeline of decide() as one table of stages. Its order is also that of the chapters in docs/algorithm.md.
#ifndef GPUSCALE_POLICIES_ENGINE_PIPELINE_H
#define GPUSCALE_POLICIES_ENGINE_PIPELINE_H

#include <stdbool.h>

#include "policies/engine/stage.h"

struct policy;
struct tick;

// Runs all stages of one tick, in the order of the table.
void pipeline_run(struct tick *t);

const char *stage_name(enum stage s);
// Returns whether the stage, one that decide() runs, can have an effect under this policy.
bool stage_is_enabled(enum stage s, const struct policy *policy);

#endif
