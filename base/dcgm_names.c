// SPDX-License-Identifier: Apache-2.0
#include "base/dcgm_names.h"

#include <string.h>

#include "base/gpu_families.h"

static const struct dcgm_name names[] = {
#define ROW(field, name, name_4_9, factor, ...) {name, name_4_9, factor},
        FAMILIES(ROW)
#undef ROW
};
#define N_NAMES (sizeof names / sizeof names[0])

const struct dcgm_name *dcgm_name_at(size_t i)
{
	for (size_t k = 0; k < N_NAMES; k++)
		if (names[k].name_4_9 && i-- == 0)
			return &names[k];
	return NULL;
}

const struct dcgm_name *dcgm_name_find(const char *name, size_t len, bool is_new)
{
	for (size_t i = 0; i < N_NAMES; i++) {
		const char *s = is_new ? names[i].name_4_9 : names[i].legacy;
		if (names[i].name_4_9 && strlen(s) == len && memcmp(s, name, len) == 0)
			return &names[i];
	}
	return NULL;
}
