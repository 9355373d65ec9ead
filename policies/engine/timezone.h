// SPDX-License-Identifier: Apache-2.0
// Conversion between UTC and the wall clock of a zone, in seconds since the epoch. A local time is the time that the
// clock shows, in seconds since 1970-01-01T00:00:00 on that clock. A table of NULL is UTC.
#ifndef GPUSCALE_POLICIES_ENGINE_TIMEZONE_H
#define GPUSCALE_POLICIES_ENGINE_TIMEZONE_H

#include <stdint.h>

struct tz_table;

// Two directions of one rule: a local time happens at the first moment at which the clock shows it or has passed it. A
// time in a gap (the clock jumps over it) happens at the jump, and a time that comes twice happens the first time.
// timezone_reached: the latest local time that has happened by utc_s.  timezone_moment: when local_s happens.
// timezone_moment(l) <= u  exactly when  l <= timezone_reached(u).
int64_t timezone_reached(const struct tz_table *zone, int64_t utc_s);
int64_t timezone_moment(const struct tz_table *zone, int64_t local_s);

#endif
