// SPDX-License-Identifier: Apache-2.0
// Completes queries on metrics of dcgm-exporter up to 4.8 by their equivalents of other exporters (the tables in
// base/dcgm_names.h), for servers without the rules manifests/monitoring/rules/gpu-names.yaml, which record the same.
#ifndef GPUSCALE_INSIGHT_GPU_NAMES_H
#define GPUSCALE_INSIGHT_GPU_NAMES_H

struct buf;
struct err;
struct promql_series;

// Exporters with other names: dcgm-exporter 4.9, AMD's device-metrics-exporter, Intel's xpumanager.
enum gpu_naming { GPU_NAMES_4_9, GPU_NAMES_AMD, GPU_NAMES_INTEL, GPU_NAMES__COUNT };
#define GPU_NAMES_ALL ((1U << GPU_NAMES__COUNT) - 1) // the set of all namings

// The query for the other names: one series per name, of exporters that have no series under the legacy names.
extern const char gpu_names_query[];
// Returns what a series of its result adds to the set of namings: 1U << enum gpu_naming.
unsigned gpu_names_of(const struct promql_series *s);

// Appends `query`, which is valid, to `out`. Each selector of a legacy name is completed by "or" and its equivalents in
// the namings of `set`, with the labels and the unit of the legacy name; a range becomes that of a subquery. Returns 0,
// or -1 and *e: ERR_LIMIT when the result exceeds the limit of `out`, ERR_INPUT for matchers that are not valid.
int gpu_names_complete(struct buf *out, const char *query, unsigned set, struct err *e);

#endif
