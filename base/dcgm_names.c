// SPDX-License-Identifier: Apache-2.0
#include "base/dcgm_names.h"

#include <string.h>

static const struct dcgm_name names[] = {
#define ROW(field, legacy, name_4_9, factor) {legacy, name_4_9, factor},
        DCGM_NAMES_4_9(ROW)
#undef ROW
};

const struct dcgm_name *dcgm_name_at(size_t i)
{
	return i < sizeof names / sizeof names[0] ? &names[i] : NULL;
}

const struct dcgm_name *dcgm_name_find(const char *name, size_t len, bool is_new)
{
	const struct dcgm_name *row = NULL;
	for (size_t i = 0; (row = dcgm_name_at(i)); i++) {
		const char *s = is_new ? row->name_4_9 : row->legacy;
		if (strlen(s) == len && memcmp(s, name, len) == 0)
			return row;
	}
	return NULL;
}
