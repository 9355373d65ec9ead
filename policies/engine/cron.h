// SPDX-License-Identifier: Apache-2.0
// Cron expressions of five fields, as a pure calendar: a local time is a number of seconds since 1970-01-01T00:00:00 on
// the wall clock, without any time zone. crontab(5): lists, ranges, steps, names of months and weekdays, 7 is Sunday; a
// day matches when either day field does, or both when one of them starts with '*'.
#ifndef GPUSCALE_POLICIES_ENGINE_CRON_H
#define GPUSCALE_POLICIES_ENGINE_CRON_H

#include <stdbool.h>
#include <stdint.h>

#define CRON_TEXT_BYTES_MAX 256
#define CRON_BEFORE_ALL     INT64_MIN // no match before
#define CRON_AFTER_ALL      INT64_MAX // no match after

struct cron {
	uint64_t minutes;  // bit 0 .. 59
	uint32_t hours;    // bit 0 .. 23
	uint32_t days;     // bit 1 .. 31
	uint32_t months;   // bit 1 .. 12
	uint32_t weekdays; // bit 0 .. 6, Sunday 0
	bool any_day;      // the field starts with '*'
	bool any_weekday;
};

// Parses `text` into *ret. Returns NULL, or a constant text: what is wrong and the fix.
const char *cron_parse(struct cron *ret, const char *text);

// Return the last match at or before local_s, and the first match after it: the start of a minute, or CRON_BEFORE_ALL /
// CRON_AFTER_ALL when no minute matches within 41 years (30 February; 29 February on one weekday comes within 40).
int64_t cron_at_or_before(const struct cron *c, int64_t local_s);
int64_t cron_after(const struct cron *c, int64_t local_s);

#endif
