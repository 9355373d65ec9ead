// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/cron.h"

#include <stddef.h>
#include <string.h>

#define DAY_S        86400
#define DAY_MIN      1440
#define SEARCH_DAYS  14976        // 41 years
#define LOCAL_MAX_S  253402300799 // the end of the year 9999
#define BLANKS       " \t"
#define VALUE_DIGITS 4 // digits of a number in a field

// ---- reading ----

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELD__COUNT };

static const struct {
	int min, max;
	const char *const *names;
	int n_names; // names of min, min + 1, ...
	const char *fault;
} fields[] = {
        [MINUTE] = {0, 59, NULL, 0,
                    "minute, the first field, must consist of 0 to 59, as in \"0\", \"*/15\" or \"0,30\""},
        [HOUR] = {0, 23, NULL, 0,
                  "hour, the second field, must consist of 0 to 23, as in \"8\", \"8-17\" or \"22-23,0-6\""},
        [DAY] = {1, 31, NULL, 0, "day of the month, the third field, must consist of 1 to 31, as in \"*\" or \"1,15\""},
        [MONTH] = {1, 12, month_names, 12,
                   "month, the fourth field, must consist of 1 to 12 or JAN to DEC, as in \"*\" or \"JUN-AUG\""},
        [WEEKDAY] = {0, 7, weekday_names, 7,
                     "day of the week, the fifth field, must consist of 0 to 7 (Sunday is 0 and 7) or SUN to SAT, as "
                     "in \"*\" or \"MON-FRI\""},
};
_Static_assert(sizeof fields / sizeof fields[0] == FIELD__COUNT, "one row per field");

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

// Parses a number or a name at *s; returns -1 for anything else.
static int take_value(const char **s, int field, bool names)
{
	const char *p = *s;
	int v = 0, digits = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (++digits > VALUE_DIGITS)
			return -1;
		v = v * 10 + (*p - '0');
	}
	for (int i = 0; names && digits == 0 && i < fields[field].n_names; i++) {
		const char *name = fields[field].names[i];
		if (lower(p[0]) == name[0] && lower(p[1]) == name[1] && lower(p[2]) == name[2]) {
			*s = p + 3;
			return fields[field].min + i;
		}
	}
	if (digits == 0)
		return -1;
	*s = p;
	return v;
}

// One element of a list: *, a, a-b, with or without /n.
static bool take_element(const char **s, int field, uint64_t *mask)
{
	int min = fields[field].min, max = fields[field].max;
	int first = min, last = field == WEEKDAY ? 6 : max, step = 1;
	bool is_single = false;
	if (**s == '*') {
		++*s;
	} else {
		first = last = take_value(s, field, true);
		is_single = **s != '-';
		if (!is_single) {
			++*s;
			last = take_value(s, field, true);
			if (field == WEEKDAY && last == 0 && first > 0)
				last = 7; // FRI-SUN
		}
	}
	if (**s == '/') {
		++*s;
		step = take_value(s, field, false);
		if (is_single)
			last = field == WEEKDAY ? 6 : max; // 5/15 is 5-59/15
	}
	if (first < min || last > max || first > last || step < 1)
		return false;
	for (int v = first; v <= last; v += step)
		*mask |= UINT64_C(1) << v;
	return true;
}

static bool take_field(const char **s, int field, uint64_t *mask, bool *any)
{
	*any = **s == '*';
	*mask = 0;
	for (;;) {
		if (!take_element(s, field, mask))
			return false;
		if (**s != ',')
			break;
		++*s;
	}
	return strchr(BLANKS, **s) != NULL; // also at the end
}

const char *cron_parse(struct cron *ret, const char *text)
{
	static const char *const shape =
	        "must have five fields: minute, hour, day of the month, month, day of the week, as in \"0 8 * * 1-5\"";
	uint64_t masks[FIELD__COUNT];
	bool any[FIELD__COUNT];
	if (strnlen(text, CRON_TEXT_BYTES_MAX + 1) > CRON_TEXT_BYTES_MAX)
		return "must be at most 256 bytes long";
	const char *s = text;
	for (int i = 0; i < FIELD__COUNT; i++) {
		s += strspn(s, BLANKS);
		if (*s == '\0' || *s == '@')
			return shape;
		if (!take_field(&s, i, &masks[i], &any[i]))
			return fields[i].fault;
	}
	s += strspn(s, BLANKS);
	if (*s != '\0')
		return shape;
	*ret = (struct cron){
	        .minutes = masks[MINUTE],
	        .hours = (uint32_t)masks[HOUR],
	        .days = (uint32_t)masks[DAY],
	        .months = (uint32_t)masks[MONTH],
	        .weekdays = (uint32_t)((masks[WEEKDAY] | masks[WEEKDAY] >> 7) & 0x7f), // 7 is 0
	        .any_day = any[DAY],
	        .any_weekday = any[WEEKDAY],
	};
	return NULL;
}

// ---- the calendar ----

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

struct date {
	int month, day, weekday;
};

// Gregorian date of a day since 1970-01-01. Hinnant: "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
static struct date date_of(int64_t day)
{
	int64_t z = day + 719468;
	int64_t era = floor_div(z, 146097);
	int64_t doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;
	return (struct date){
	        .month = (int)(mp < 10 ? mp + 3 : mp - 9),
	        .day = (int)(doy - (153 * mp + 2) / 5 + 1),
	        .weekday = (int)(day + 4 - floor_div(day + 4, 7) * 7), // the epoch was a Thursday
	};
}

static bool has_bit(uint64_t mask, int i)
{
	return mask >> i & 1;
}

static bool matches_day(const struct cron *c, int64_t day)
{
	struct date d = date_of(day);
	if (!has_bit(c->months, d.month))
		return false;
	bool by_day = has_bit(c->days, d.day), by_weekday = has_bit(c->weekdays, d.weekday);
	return c->any_day || c->any_weekday ? by_day && by_weekday : by_day || by_weekday;
}

// Returns the match of a day that is next to `minute`, or at it, in the direction `way` (1, -1); -1 = none.
static int search_day(const struct cron *c, int minute, int way)
{
	for (; minute >= 0 && minute < DAY_MIN; minute += way) {
		int of_hour = minute % 60;
		if (!has_bit(c->hours, minute / 60))
			minute += (way > 0 ? 59 : 0) - of_hour; // the last one of this hour
		else if (has_bit(c->minutes, of_hour))
			return minute;
	}
	return -1;
}

// Returns false, without a search, for an expression without matches: one that was rejected has no bits.
static bool can_match(const struct cron *c, int64_t local_s)
{
	bool in_range = local_s >= -LOCAL_MAX_S && local_s <= LOCAL_MAX_S;
	return in_range && c->minutes != 0 && c->hours != 0 && c->months != 0 && (c->days | c->weekdays) != 0;
}

// Returns the first match from the minute of from_s on, in the direction `way` (1, -1); `none` when there is none.
static int64_t search(const struct cron *c, int64_t from_s, int way, int64_t none)
{
	int64_t day = floor_div(from_s, DAY_S);
	int minute = (int)((from_s - day * DAY_S) / 60);
	for (int i = 0; i <= SEARCH_DAYS; i++, day += way, minute = way > 0 ? 0 : DAY_MIN - 1) {
		if (!matches_day(c, day))
			continue;
		int found = search_day(c, minute, way);
		if (found >= 0)
			return day * DAY_S + found * 60;
	}
	return none;
}

int64_t cron_at_or_before(const struct cron *c, int64_t local_s)
{
	return can_match(c, local_s) ? search(c, local_s, -1, CRON_BEFORE_ALL) : CRON_BEFORE_ALL;
}

int64_t cron_after(const struct cron *c, int64_t local_s)
{
	return can_match(c, local_s) ? search(c, (floor_div(local_s, 60) + 1) * 60, 1, CRON_AFTER_ALL) : CRON_AFTER_ALL;
}
