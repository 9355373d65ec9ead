// SPDX-License-Identifier: Apache-2.0
// Judges a page of metrics by the rules of exporter/health_policy.h, for `gpuscale-exporter check`.
#ifndef GPUSCALE_EXPORTER_CMD_HEALTH_CLASSIFY_H
#define GPUSCALE_EXPORTER_CMD_HEALTH_CLASSIFY_H

#include <stddef.h>
#include <stdint.h>

#include "exporter/health_policy.h"

struct page_view;
struct page_view_gpu;

#define HEALTH_FINDINGS_MAX 512

struct health_finding {
	enum health_action action;
	const struct page_view_gpu *gpu;  // NULL: the node
	char reason[HEALTH_REASON_BYTES]; // CamelCase, for machines: "XID79", "RowRemapFailure"
	char text[160];
};

// Writes the findings about the page `v` at `wall_ms` to `ret_findings`, worst first; at most `max`. Returns their
// number.
size_t health_classify(const struct health_policy *p, const struct page_view *v, int64_t wall_ms,
                       struct health_finding *ret_findings, size_t max);

#endif
