// SPDX-License-Identifier: Apache-2.0
// The health verdict of one GPU: the worst finding about a sample, by the rules that `check` and remediation use.
#ifndef GPUSCALE_EXPORTER_HEALTH_VERDICT_H
#define GPUSCALE_EXPORTER_HEALTH_VERDICT_H

#include <stddef.h>
#include <stdint.h>

#include "exporter/health_policy.h"

struct device_sample;
struct xid_count;

struct health_verdict {
	enum health_action action;        // HEALTH_IGNORE without a finding
	char reason[HEALTH_REASON_BYTES]; // CamelCase: "XID79", "RowRemapFailure"; "Healthy" without a finding
};

// Judges the GPU of `sample`, whose XIDs are xids[0..n), at `wall_ms`. Of several findings with the same action, the
// first row of the table of conditions wins, then the XID that occurred first.
void health_verdict_of(const struct health_policy *p, const struct device_sample *sample, const struct xid_count *xids,
                       size_t n, int64_t wall_ms, struct health_verdict *ret);

#endif
