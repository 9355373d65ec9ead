// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/timezone.h"

#include <stdbool.h>

#include "base/tz/tz_table.h"

// Transitions at or before utc_s.
static size_t count_until(const struct tz_table *zone, int64_t utc_s)
{
	size_t lo = 0, hi = zone->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (zone->at_s[mid] <= utc_s)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

// Offset after the first `n` transitions.
static int64_t offset_after(const struct tz_table *zone, size_t n)
{
	return n == 0 ? zone->first_offset_s : zone->offset_s[n - 1];
}

int64_t timezone_reached(const struct tz_table *zone, int64_t utc_s)
{
	if (!zone)
		return utc_s;
	size_t n = count_until(zone, utc_s);
	int64_t reached = utc_s + offset_after(zone, n);
	// Before a jump back the clock may have shown a later time; jumps longer ago than two offsets do not matter.
	for (; n > 0 && zone->at_s[n - 1] > utc_s - 2 * TZ_OFFSET_MAX_S; n--) {
		int64_t before = zone->at_s[n - 1] - 1 + offset_after(zone, n - 1);
		reached = before > reached ? before : reached;
	}
	return reached;
}

int64_t timezone_moment(const struct tz_table *zone, int64_t local_s)
{
	if (!zone)
		return local_s;
	// No clock is further ahead of UTC than this: earlier, it has not shown local_s yet.
	size_t n = count_until(zone, local_s - TZ_OFFSET_MAX_S);
	while (n < zone->n && zone->at_s[n] + offset_after(zone, n) <= local_s)
		n++;
	int64_t utc_s = local_s - offset_after(zone, n);
	bool is_jumped_over = n > 0 && utc_s < zone->at_s[n - 1];
	return is_jumped_over ? zone->at_s[n - 1] : utc_s;
}
