// SPDX-License-Identifier: Apache-2.0
// The table of verdicts as rules of Prometheus: the measures of each workload, its verdict, and one alert.
#ifndef GPUSCALE_INSIGHT_VERDICT_RULES_H
#define GPUSCALE_INSIGHT_VERDICT_RULES_H

#include <stdint.h>

struct buf;

// Appends a file of rules in YAML, with measures over `window_s` seconds. They read gpu:owner:info and
// gpu:memory_used:bytes of rules/gpu.yaml.
void verdict_rules_print(struct buf *out, int64_t window_s);

#endif
