// SPDX-License-Identifier: Apache-2.0
// What a wall clock shows, found without the search of policies/engine/schedule.c.
#ifndef GPUSCALE_TEST_SUPPORT_TIMEZONE_LOCAL_H
#define GPUSCALE_TEST_SUPPORT_TIMEZONE_LOCAL_H

#include <stdint.h>

struct tz_table;

// Returns what the clock of the zone shows at utc_s; NULL is UTC.
int64_t timezone_local(const struct tz_table *zone, int64_t utc_s);

#endif
