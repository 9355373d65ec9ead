// SPDX-License-Identifier: Apache-2.0
// The findings of `gpuscale check` for other programs: JSON, SARIF 2.1.0, and workflow commands of GitHub. The source
// is the report in text, "file:line:col: [warning: |info: ]path: message" per line, which every checker appends to.
#ifndef GPUSCALE_CLI_POLICY_CHECK_REPORT_H
#define GPUSCALE_CLI_POLICY_CHECK_REPORT_H

#include <stddef.h>

#include "policies/explain/explain.h"

struct buf;

struct check_counts {
	size_t policies, pools, price_books; // valid ones
	size_t errors, warnings;
};

// Appends `report`, a NUL-terminated text, in `format`: JSON (also for OUTPUT_YAML, which the caller converts), SARIF
// or GITHUB. Lines without a place are findings without one; excerpts and carets are omitted.
void check_report_write(struct buf *out, const char *report, const struct check_counts *counts,
                        enum output_format format);

#endif
