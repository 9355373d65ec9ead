// SPDX-License-Identifier: Apache-2.0
// Triggers of type cron: KEDA takes the larger of the windows that are open. So the schedules are those of the maximum
// over a week, minute by minute, which has no overlaps; of other windows, the largest open one counts (combine: Max).
// KEDA: cron_scaler.go.

#include "base/base.h"
#include "base/schema/doc.h"
#include "policies/convert/convert.h"
#include "policies/engine/policy.h"
#include "policies/engine/schedule.h"

#define DAY_MINUTES  1440
#define WEEK_MINUTES (7 * DAY_MINUTES)
#define FIELDS       5
#define RUNS_MAX     WEEK_MINUTES
// Windows that are not the same every week are compared with their schedules over these years.
#define WALK_FROM_S    INT64_C(1767225600) // 2026-01-01T00:00:00Z
#define WALK_FOR_S     (5 * INT64_C(366) * 86400)
#define WALK_STEPS_MAX 10000

// ---- expressions ----

// Skips `TZ=ZONE ` and `CRON_TZ=ZONE `; *ret_zone is left alone without them.
static const char *skip_zone(struct conversion *c, const char *text, const char **ret_zone)
{
	static const char *const prefixes[] = {"TZ=", "CRON_TZ="};
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
		size_t n = strlen(prefixes[i]);
		if (strncmp(text, prefixes[i], n) != 0)
			continue;
		size_t zone = strcspn(text + n, " \t");
		*ret_zone = convert_text(c, "%.*s", (int)zone, text + n);
		text += n + zone;
		return text + strspn(text, " \t");
	}
	return text;
}

static const char *expand_descriptor(const char *text)
{
	static const char *const names[][2] = {
	        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
	        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
	        {"@hourly", "0 * * * *"},
	};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(text, names[i][0]) == 0)
			return names[i][1];
	return text;
}

// Copies one field. In robfig/cron, '?' is '*', a '*' anywhere in the list makes the field "any", and `*` with a step
// is a range: a day matches when either day field does.
static void put_field(struct buf *b, const char *field, size_t len, int index)
{
	static const char *const ranges[FIELDS] = {"0-59", "0-23", "1-31", "1-12", "0-6"};
	bool any = false;
	size_t start = 0;
	for (size_t i = 0; i <= len; i++) {
		if (i < len && field[i] != ',')
			continue;
		any |= (i - start == 1 && strchr("*?", field[start])) ||
		       (i - start == 3 && strchr("*?", field[start]) && memcmp(field + start + 1, "/1", 2) == 0);
		start = i + 1;
	}
	if (any) {
		buf_putc(b, '*');
		return;
	}
	for (size_t i = 0; i < len; i++) {
		if (strchr("*?", field[i]))
			buf_puts(b, ranges[index]);
		else
			buf_putc(b, field[i]);
	}
}

static const char *normalize(struct conversion *c, const char *text)
{
	struct buf b;
	buf_init(&b, 2048);
	text = expand_descriptor(text);
	for (int i = 0; *text; i++) {
		text += strspn(text, " \t");
		size_t len = strcspn(text, " \t");
		if (len == 0)
			break;
		buf_puts(&b, i > 0 ? " " : "");
		if (i < FIELDS)
			put_field(&b, text, len, i);
		else
			buf_put(&b, text, len);
		text += len;
	}
	const char *kept = convert_text(c, "%s", buf_str(&b));
	buf_done(&b);
	return kept;
}

void convert_window(struct conversion *c, const char *name, const struct doc_node *meta, int32_t replicas)
{
	if (c->n_windows == CONVERT_SCHEDULES_MAX) {
		convert_lost(c, "the cron trigger %s: a policy has at most %d schedules", name, CONVERT_SCHEDULES_MAX);
		return;
	}
	struct policy_schedule *w = &c->windows[c->n_windows];
	const char *zone = convert_get(meta, "timezone", "UTC"), *start_zone = zone, *end_zone = zone;
	const char *start = skip_zone(c, convert_get(meta, "start", ""), &start_zone);
	const char *end = skip_zone(c, convert_get(meta, "end", ""), &end_zone);
	*w = (struct policy_schedule){.name = name,
	                              .time_zone = start_zone,
	                              .min_set = true,
	                              .min_replicas = replicas,
	                              .combine = SCHEDULE_MAX};
	w->start_text = normalize(c, start);
	w->end_text = normalize(c, end);
	const char *fault = cron_parse(&w->start, w->start_text), *end_fault = cron_parse(&w->end, w->end_text);
	if (fault || end_fault) {
		convert_lost(c, "the cron trigger %s, not converted: %s %s", name, fault ? "start" : "end",
		             fault ? fault : end_fault);
	} else if (strcmp(start_zone, end_zone) != 0) {
		convert_lost(c, "the cron trigger %s, not converted: a schedule has one time zone, not %s and %s", name,
		             start_zone, end_zone);
	} else {
		c->n_windows++;
	}
}

// ---- a week ----

// Returns the days of the week on which an expression that is the same in every week matches; 0 for other expressions.
static uint32_t weekly_days(const struct cron *e)
{
	const uint32_t all_days = UINT32_C(0xfffffffe), all_months = 0x1ffe, all_weekdays = 0x7f;
	if (e->months != all_months)
		return 0;
	if (e->any_day || e->any_weekday)
		return e->days == all_days ? e->weekdays : 0;
	return e->days == all_days || e->weekdays == all_weekdays ? all_weekdays : 0;
}

static bool matches_minute(const struct cron *e, uint32_t days, int minute)
{
	return (days >> minute / DAY_MINUTES & 1) && (e->hours >> minute % DAY_MINUTES / 60 & 1) &&
	       (e->minutes >> minute % 60 & 1);
}

// Sets is_open[m] for each minute of a week in which the window is open. KEDA: a window is open when its next event is
// an end, or an end and a start together.
static void open_minutes(const struct policy_schedule *w, bool *is_open)
{
	uint32_t start_days = weekly_days(&w->start), end_days = weekly_days(&w->end);
	bool open = false;
	for (int i = 2 * WEEK_MINUTES; i-- > 0;) {
		int next = (i + 1) % WEEK_MINUTES;
		if (matches_minute(&w->end, end_days, next))
			open = true;
		else if (matches_minute(&w->start, start_days, next))
			open = false;
		is_open[i % WEEK_MINUTES] = open;
	}
}

struct run {
	uint32_t hours, days; // sets: the run starts at `minute` of each of the hours of each of the days
	int minute, length;
	int32_t replicas;
	size_t window; // the trigger that asks for it
};

struct week {
	int32_t largest[WEEK_MINUTES];
	size_t window[WEEK_MINUTES];
	bool is_open[WEEK_MINUTES];
	struct run runs[RUNS_MAX];
	size_t n_runs;
};

static void fill_week(const struct conversion *c, struct week *y)
{
	for (size_t i = 0; i < c->n_windows; i++) {
		open_minutes(&c->windows[i], y->is_open);
		for (int m = 0; m < WEEK_MINUTES; m++)
			if (y->is_open[m] && c->windows[i].min_replicas > y->largest[m]) {
				y->largest[m] = c->windows[i].min_replicas;
				y->window[m] = i;
			}
	}
}

// Adds the run to one of another day, else to one of another hour of the same days.
static void add_run(struct week *y, int start, int length)
{
	struct run new = {.minute = start % 60,
	                  .hours = UINT32_C(1) << start % DAY_MINUTES / 60,
	                  .days = UINT32_C(1) << start / DAY_MINUTES,
	                  .length = length,
	                  .replicas = y->largest[start],
	                  .window = y->window[start]};
	for (size_t i = 0; i < y->n_runs; i++) {
		struct run *r = &y->runs[i];
		if (r->minute == new.minute && r->hours == new.hours && r->length == length &&
		    r->replicas == new.replicas) {
			r->days |= new.days;
			return;
		}
	}
	y->runs[y->n_runs++] = new;
}

static bool ends_that_day(const struct run *r)
{
	int hour = 31 - __builtin_clz(r->hours);
	return hour * 60 + r->minute + r->length < DAY_MINUTES;
}

static void merge_hours(struct week *y)
{
	size_t kept = 0;
	for (size_t i = 0; i < y->n_runs; i++) {
		struct run *r = &y->runs[i], *into = NULL;
		for (size_t k = 0; k < kept && !into; k++)
			if (y->runs[k].minute == r->minute && y->runs[k].length == r->length &&
			    y->runs[k].replicas == r->replicas && y->runs[k].days == r->days &&
			    ends_that_day(&y->runs[k]) && ends_that_day(r) && r->length < 60)
				into = &y->runs[k];
		if (into)
			into->hours |= r->hours;
		else
			y->runs[kept++] = *r;
	}
	y->n_runs = kept;
}

// Finds the runs of equal minutes. False if the whole week is one.
static bool find_runs(struct week *y)
{
	int first = -1;
	for (int m = 0; m < WEEK_MINUTES && first < 0; m++)
		if (y->largest[m] != y->largest[(m + WEEK_MINUTES - 1) % WEEK_MINUTES])
			first = m;
	if (first < 0)
		return false;
	for (int i = 0, length; i < WEEK_MINUTES; i += length) {
		int start = (first + i) % WEEK_MINUTES;
		for (length = 1; i + length < WEEK_MINUTES; length++)
			if (y->largest[(start + length) % WEEK_MINUTES] != y->largest[start])
				break;
		if (y->largest[start] > 0)
			add_run(y, start, length);
	}
	merge_hours(y);
	return true;
}

// ---- schedules ----

static bool is_taken(const struct conversion *c, const char *name)
{
	for (size_t i = 0; i < c->n_schedules; i++)
		if (strcmp(c->schedules[i].name, name) == 0)
			return true;
	return false;
}

static struct conversion_schedule *add_schedule(struct conversion *c, const struct policy_schedule *w)
{
	const char *name = w->name;
	for (int i = 2; is_taken(c, name); i++)
		name = convert_text(c, "%s-%d", w->name, i);
	struct conversion_schedule *s = &c->schedules[c->n_schedules++];
	*s = (struct conversion_schedule){.name = name, .time_zone = w->time_zone};
	s->min_replicas = convert_text(c, "%d", w->min_replicas);
	return s;
}

// Formats a set of hours or days as "*", "8" or "1-5,0".
static const char *list_of(struct conversion *c, uint32_t mask, int n)
{
	struct buf b;
	buf_init(&b, 256);
	bool all = mask == (1U << n) - 1;
	if (all)
		buf_putc(&b, '*');
	for (int i = 0; i < n && !all; i++) {
		int last = i;
		while (last + 1 < n && (mask >> (last + 1) & 1))
			last++;
		if (!(mask >> i & 1))
			continue;
		buf_puts(&b, b.len > 0 ? "," : "");
		buf_printf(&b, last > i ? "%d-%d" : "%d", i, last);
		i = last;
	}
	const char *text = convert_text(c, "%s", buf_str(&b));
	buf_done(&b);
	return text;
}

static const char *expression(struct conversion *c, int minute, uint32_t hours, uint32_t days)
{
	return convert_text(c, "%d %s * * %s", minute, list_of(c, hours, 24), list_of(c, days, 7));
}

static void add_run_schedule(struct conversion *c, const struct run *r)
{
	struct policy_schedule w = c->windows[r->window];
	w.min_replicas = r->replicas;
	struct conversion_schedule *s = add_schedule(c, &w);
	s->start = expression(c, r->minute, r->hours, r->days);
	int end = __builtin_ctz(r->hours) * 60 + r->minute + r->length, shift = end / DAY_MINUTES % 7;
	uint32_t hours = UINT32_C(1) << end % DAY_MINUTES / 60;
	if (__builtin_popcount(r->hours) > 1) // these end on their day
		hours = r->hours << (r->minute + r->length) / 60;
	s->end = expression(c, end % 60, hours, (r->days << shift | r->days >> (7 - shift)) & 0x7f);
}

static bool is_weekly(const struct conversion *c)
{
	for (size_t i = 0; i < c->n_windows; i++)
		if (!weekly_days(&c->windows[i].start) || !weekly_days(&c->windows[i].end) ||
		    strcmp(c->windows[i].time_zone, c->windows[0].time_zone) != 0)
			return false;
	return true;
}

static void note_unused(struct conversion *c, const struct policy_schedule *w)
{
	convert_note(c, "the cron trigger %s: never open, or never the largest of the open ones", w->name);
}

static void note_all_unused(struct conversion *c, const struct week *y)
{
	for (size_t i = 0; i < c->n_windows; i++) {
		bool used = false;
		for (int m = 0; m < WEEK_MINUTES && !used; m++)
			used = y->largest[m] > 0 && y->window[m] == i;
		if (!used)
			note_unused(c, &c->windows[i]);
	}
}

// Returns false if there are more schedules than a policy may have.
static bool convert_week(struct conversion *c)
{
	struct week *y = must_alloc(calloc(1, sizeof *y));
	fill_week(c, y);
	bool changes = find_runs(y), fits = y->n_runs <= CONVERT_SCHEDULES_MAX;
	note_all_unused(c, y);
	if (!changes && y->largest[0] > 0) {
		c->min_replicas = convert_text(c, "%d", y->largest[0]);
		c->idle_replicas = NULL;
		convert_note(c, "the cron triggers: always open, so that minReplicas is theirs");
	}
	for (size_t i = 0; fits && i < y->n_runs; i++)
		add_run_schedule(c, &y->runs[i]);
	free(y);
	return fits;
}

// Follows some years of starts and ends: returns whether a policy opens the window when KEDA does, which closes it
// between two starts in a row.
static bool opens_alike(struct policy_schedule *s)
{
	struct policy policy = {.schedules = s, .n_schedules = 1};
	int64_t now_s = WALK_FROM_S, unused;
	for (int step = 0; step < WALK_STEPS_MAX && now_s < WALK_FROM_S + WALK_FOR_S; step++) {
		int64_t start = cron_after(&s->start, now_s), end = cron_after(&s->end, now_s);
		if ((end <= start) != (schedule_at(&policy, now_s * 1000, &unused) == 0))
			return false;
		now_s = start < end ? start : end;
	}
	return true;
}

// Windows that are not the same in every week, or in several time zones: one schedule for each, of which the largest
// open one counts.
static void convert_each(struct conversion *c)
{
	struct policy policy = {.schedules = c->windows, .n_schedules = c->n_windows};
	for (size_t i = 0; i < c->n_windows;) {
		struct policy_schedule *w = &c->windows[i];
		if (schedule_fault(&policy, i)) {
			note_unused(c, w);
			c->n_windows = --policy.n_schedules;
			memmove(w, w + 1, (c->n_windows - i) * sizeof *w);
			continue;
		}
		if (!c->live && !opens_alike(w)) // takes too long for an event loop
			convert_note(c,
			             "the cron trigger %s: open from a start to the next end, in KEDA only from the "
			             "last start before an end; split the schedule by hand",
			             w->name);
		i++;
	}
	for (size_t i = 0; i < c->n_windows; i++) {
		struct conversion_schedule *s = add_schedule(c, &c->windows[i]);
		s->start = c->windows[i].start_text;
		s->end = c->windows[i].end_text;
		s->is_max = c->n_windows > 1;
	}
}

void convert_schedules(struct conversion *c)
{
	if (c->n_windows > 0 && (!is_weekly(c) || !convert_week(c)))
		convert_each(c);
}
