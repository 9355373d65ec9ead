// SPDX-License-Identifier: Apache-2.0
// The meaning of GPU metrics, as far as queries get it wrong.
#ifndef GPUSCALE_POLICIES_LINT_LINT_NAMES_H
#define GPUSCALE_POLICIES_LINT_LINT_NAMES_H

#include <stdbool.h>

enum lint_kind {
	LINT_GAUGE,   // any other unit
	LINT_DEGREES, // gauge, celsius
	LINT_WATTS,   // gauge
	LINT_PERCENT, // gauge, 0 - 100
	LINT_RATIO,   // gauge, 0 - 1
	LINT_RATE,    // a gauge that is already a rate, despite its name
	LINT_CODE,    // a gauge with the last code
	LINT_COUNTER, // only grows
	LINT_KIND__COUNT
};

// Returns the kind of a metric, under its name in any release of dcgm-exporter; LINT_KIND__COUNT for a name that is not
// in the table.
enum lint_kind lint_name_kind(const char *name);
// Returns whether a DCGM_FI_* name exists in no version; *ret_meant is a similar name, or NULL.
bool lint_name_is_unknown(const char *name, const char **ret_meant);

#endif
