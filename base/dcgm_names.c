// SPDX-License-Identifier: Apache-2.0
#include "base/dcgm_names.h"

#include <string.h>

#include "base/gpu_families.h"

static const struct dcgm_name names[] = {
#define ROW(field, name, name_4_9, factor, ...) {name, name_4_9, factor},
        FAMILIES(ROW)
#undef ROW
};

const struct dcgm_name *dcgm_name_at(size_t i)
{
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (names[k].name_4_9 && i-- == 0)
			return &names[k];
	return NULL;
}

const struct dcgm_name *dcgm_name_find(const char *name, size_t len, bool is_new)
{
	const struct dcgm_name *row;
	for (size_t i = 0; (row = dcgm_name_at(i)); i++) {
		const char *s = is_new ? row->name_4_9 : row->legacy;
		if (strlen(s) == len && memcmp(s, name, len) == 0)
			return row;
	}
	return NULL;
}
