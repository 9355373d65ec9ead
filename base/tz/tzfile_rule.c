// SPDX-License-Identifier: Apache-2.0
// The rule at the end of a TZif file: POSIX TZ with the extension of RFC 8536, section 3.3.1 (hours from -167 to 167).
#include <stdbool.h>

#include "base/num.h"
#include "base/tz/tzfile.h"

#define DAY_S     86400
#define HOURS_MAX 167

enum date_kind { DATE_MONTH_WEEK_DAY, DATE_JULIAN, DATE_DAY };

struct rule_date {
	enum date_kind kind;
	int month, week, day; // Mm.w.d; Jn and n: day
	int32_t time_s;       // local time of the change, before it
};

static bool is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t local_of(const struct rule_date *d, int year)
{
	int64_t day = num_days_of_date(year, 1, 1);
	if (d->kind == DATE_DAY) {
		day += d->day;
	} else if (d->kind == DATE_JULIAN) { // 29 February is never counted
		day += d->day - 1 + (is_leap(year) && d->day >= 60);
	} else {
		int64_t first = num_days_of_date(year, d->month, 1);
		int64_t next = num_days_of_date(year + d->month / 12, d->month % 12 + 1, 1);
		int weekday = (int)((first + 4) % 7);
		day = first + (d->day - weekday + 7) % 7 + 7 * (d->week - 1);
		while (day >= next) // week 5 is the last one
			day -= 7;
	}
	return day * DAY_S + d->time_s;
}

static bool take_number(const char **s, int max, int *ret)
{
	int v = 0, digits = 0;
	for (; **s >= '0' && **s <= '9' && digits < 4; ++*s, digits++)
		v = v * 10 + (**s - '0');
	*ret = v;
	return digits > 0 && v <= max && !(**s >= '0' && **s <= '9');
}

// [+-]hh[:mm[:ss]] in seconds.
static bool take_time(const char **s, int hours_max, int32_t *ret_s)
{
	int sign = **s == '-' ? -1 : 1, h, m = 0, sec = 0;
	if (**s == '-' || **s == '+')
		++*s;
	if (!take_number(s, hours_max, &h))
		return false;
	if (**s == ':') {
		++*s;
		if (!take_number(s, 59, &m))
			return false;
		if (**s == ':') {
			++*s;
			if (!take_number(s, 59, &sec))
				return false;
		}
	}
	*ret_s = sign * (h * 3600 + m * 60 + sec);
	return true;
}

// Three letters or more, or anything in <>.
static bool take_name(const char **s)
{
	int n = 0;
	if (**s == '<') {
		for (++*s; **s != '>'; ++*s)
			if (**s == '\0')
				return false;
		++*s;
		return true;
	}
	for (; (**s >= 'a' && **s <= 'z') || (**s >= 'A' && **s <= 'Z'); ++*s)
		n++;
	return n >= 3;
}

static bool take_date(const char **s, struct rule_date *d)
{
	*d = (struct rule_date){.kind = DATE_DAY, .time_s = 2 * 3600};
	if (**s != ',')
		return false;
	++*s;
	if (**s == 'M') {
		++*s;
		d->kind = DATE_MONTH_WEEK_DAY;
		if (!take_number(s, 12, &d->month) || d->month < 1 || *(*s)++ != '.' || !take_number(s, 5, &d->week) ||
		    d->week < 1 || *(*s)++ != '.' || !take_number(s, 6, &d->day))
			return false;
	} else {
		bool julian = **s == 'J';
		d->kind = julian ? DATE_JULIAN : DATE_DAY;
		*s += julian;
		if (!take_number(s, 365, &d->day) || (julian && d->day < 1))
			return false;
	}
	if (**s != '/')
		return true;
	++*s;
	return take_time(s, HOURS_MAX, &d->time_s);
}

struct rule {
	int32_t standard_s, summer_s; // offsets east of UTC
	bool has_summer;
	struct rule_date start, end; // first and last day of summer time
};

static bool parse(const char *s, struct rule *r)
{
	int32_t west_s;
	*r = (struct rule){0};
	if (!take_name(&s) || !take_time(&s, 24, &west_s))
		return false;
	r->standard_s = r->summer_s = -west_s;
	if (*s == '\0')
		return true;
	r->has_summer = true;
	if (!take_name(&s))
		return false;
	r->summer_s = r->standard_s + 3600;
	if (*s != ',') {
		if (!take_time(&s, 24, &west_s))
			return false;
		r->summer_s = -west_s;
	}
	return take_date(&s, &r->start) && take_date(&s, &r->end) && *s == '\0';
}

int tzfile_rule(const char *rule, int first_year, int64_t *ret_at_s, int32_t *ret_offset_s_list, int max,
                int32_t *ret_offset_s)
{
	struct rule r;
	if (!parse(rule, &r))
		return -1;
	*ret_offset_s = r.standard_s;
	int n = 0;
	for (int year = first_year; r.has_summer && year <= TZFILE_LAST_YEAR && n + 2 <= max; year++) {
		int64_t start_s = local_of(&r.start, year) - r.standard_s, end_s = local_of(&r.end, year) - r.summer_s;
		bool start_first = start_s <= end_s;
		int64_t at_s[2] = {start_first ? start_s : end_s, start_first ? end_s : start_s};
		int32_t to_s[2] = {start_first ? r.summer_s : r.standard_s, start_first ? r.standard_s : r.summer_s};
		if (year == first_year)
			*ret_offset_s = start_first ? r.standard_s : r.summer_s;
		for (int i = 0; i < 2; i++) {
			// Summer time all year ends where the next begins: only the later one counts.
			if (n > 0 && ret_at_s[n - 1] >= at_s[i])
				n--;
			ret_at_s[n] = at_s[i];
			ret_offset_s_list[n++] = to_s[i];
		}
	}
	return n;
}
