// SPDX-License-Identifier: Apache-2.0
// What the metrics of GPUs mean, as far as a query can get it wrong.
#ifndef GPUSCALE_POLICYLINT_LINT_NAMES_H
#define GPUSCALE_POLICYLINT_LINT_NAMES_H

#include <stdbool.h>

enum lint_kind {
	LINT_GAUGE,   // of any unit
	LINT_PERCENT, // gauge, 0 - 100
	LINT_RATIO,   // gauge, 0 - 1
	LINT_RATE,    // a gauge that is a rate already, whatever its name says
	LINT_CODE,    // a gauge that holds the last code seen
	LINT_COUNTER, // only grows
	LINT_KIND__COUNT
};

struct lint_name {
	const char *name;
	enum lint_kind kind;
};

// NULL for a name that is not in the table.
const struct lint_name *lint_name_find(const char *name);
// A DCGM_FI_* name that no version serves; *ret_meant is what may be meant, or NULL.
bool lint_name_is_unknown(const char *name, const char **ret_meant);

#endif
