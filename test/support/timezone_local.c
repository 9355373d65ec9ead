// SPDX-License-Identifier: Apache-2.0
#include "test/support/timezone_local.h"

#include "base/tz/tz_table.h"

int64_t timezone_local(const struct tz_table *zone, int64_t utc_s)
{
	int64_t offset_s = zone ? zone->first_offset_s : 0;
	for (size_t i = 0; zone && i < zone->n && zone->at_s[i] <= utc_s; i++)
		offset_s = zone->offset_s[i];
	return utc_s + offset_s;
}
