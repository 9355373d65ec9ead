// SPDX-License-Identifier: Apache-2.0
#include "policies/schema/binding.h"

#include <string.h>

bool scale_target_equals(const struct scale_target *a, const struct scale_target *b)
{
	return strcmp(a->api_version, b->api_version) == 0 && strcmp(a->kind, b->kind) == 0 &&
	       strcmp(a->name, b->name) == 0;
}
