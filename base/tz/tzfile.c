// SPDX-License-Identifier: Apache-2.0
#include "base/tz/tzfile.h"

#include <errno.h>
#include <fts.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/file_open.h"

// ---- the rule at the end of a file: POSIX TZ with the extension of RFC 8536, section 3.3.1 ----

#define DAY_S     86400
#define HOURS_MAX 167

enum date_kind { DATE_MONTH_WEEK_DAY, DATE_JULIAN, DATE_DAY };

struct rule_date {
	enum date_kind kind;
	int month, week, day; // Mm.w.d; Jn and n: day
	int32_t time_s;       // local time of the change, before it
};

// Days and months above the last one are those of the next month and year.
static int64_t local_of(const struct rule_date *d, int year)
{
	int64_t day;
	if (d->kind == DATE_DAY) {
		day = num_days_of_date(year, 1, d->day + 1);
	} else if (d->kind == DATE_JULIAN) { // 29 February is never counted
		day = num_days_of_date(year, d->day < 60 ? 1 : 3, d->day < 60 ? d->day : d->day - 59);
	} else {
		int64_t first = num_days_of_date(year, d->month, 1), next = num_days_of_date(year, d->month + 1, 1);
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
	int sign = **s == '-' ? -1 : 1, seconds = 0, n;
	if (**s == '-' || **s == '+')
		++*s;
	for (int unit = 3600; unit == 3600 || (unit > 0 && **s == ':'); unit /= 60) {
		if (unit < 3600)
			++*s;
		if (!take_number(s, unit == 3600 ? hours_max : 59, &n))
			return false;
		seconds += n * unit;
	}
	*ret_s = sign * seconds;
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

// ---- the file ----

#define HEADER_BYTES   44
#define TYPES_MAX      256
#define RULE_BYTES_MAX 128
#define RULE_TIMES_MAX (2 * (TZFILE_LAST_YEAR - TZFILE_FIRST_YEAR + 1))
#define EPOCH_MARGIN_S (4 * TZ_OFFSET_MAX_S) // so that local times of the first days find their way

struct reader {
	const char *name;
	const unsigned char *p;
	size_t left;
};

static int fail(const struct reader *r, const char *what, struct err *e)
{
	return err_set(e, ERR_INPUT, "time zone file %s: %s", r->name, what);
}

static int64_t big_endian(const unsigned char *p, int bytes)
{
	uint64_t v = p[0] & 0x80 ? ~UINT64_C(0) : 0; // two's complement
	for (int i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	int64_t r;
	memcpy(&r, &v, sizeof r);
	return r;
}

static const unsigned char *take(struct reader *r, size_t n)
{
	if (n > r->left)
		return NULL;
	const unsigned char *p = r->p;
	r->p += n;
	r->left -= n;
	return p;
}

struct counts {
	int version;
	size_t isutc, isstd, leap, time, type, chars;
};

// RFC 8536, section 3.1.
static int read_header(struct reader *r, struct counts *ret, struct err *e)
{
	const unsigned char *p = take(r, HEADER_BYTES);
	if (!p || memcmp(p, "TZif", 4) != 0)
		return fail(r, "is not a TZif file", e);
	size_t *const counts[] = {&ret->isutc, &ret->isstd, &ret->leap, &ret->time, &ret->type, &ret->chars};
	ret->version = p[4];
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		int64_t n = big_endian(p + 20 + 4 * i, 4);
		if (n < 0 || n > TZFILE_BYTES_MAX)
			return fail(r, "has a count that cannot be", e);
		*counts[i] = (size_t)n;
	}
	return 0;
}

static size_t body_bytes(const struct counts *n, size_t time_bytes)
{
	return n->time * (time_bytes + 1) + n->type * 6 + n->chars + n->leap * (time_bytes + 4) + n->isstd + n->isutc;
}

struct building {
	int64_t at_s[TZFILE_TIMES_MAX + RULE_TIMES_MAX];
	int32_t offset_s[TZFILE_TIMES_MAX + RULE_TIMES_MAX];
	size_t n;
	int32_t first_offset_s;
};

static int32_t last_offset(const struct building *b)
{
	return b->n == 0 ? b->first_offset_s : b->offset_s[b->n - 1];
}

// A transition that changes the offset; what only changes the name of the time is none.
static void put(struct building *b, int64_t at_s, int32_t offset_s)
{
	if (at_s < -EPOCH_MARGIN_S) {
		b->first_offset_s = offset_s;
		b->n = 0;
		return;
	}
	if (offset_s == last_offset(b))
		return;
	b->at_s[b->n] = at_s;
	b->offset_s[b->n++] = offset_s;
}

// RFC 8536, section 3.2, with 64-bit times.
static int read_body(struct reader *r, const struct counts *n, struct building *b, struct err *e)
{
	if (n->leap > 0)
		return fail(r, "counts leap seconds (a \"right/\" zone): use the one without", e);
	if (n->type == 0 || n->type > TYPES_MAX)
		return fail(r, "has no local time type, or too many", e);
	if (n->time > TZFILE_TIMES_MAX)
		return err_set(e, ERR_LIMIT, "time zone file %s: %zu transitions are more than the ceiling of %d",
		               r->name, n->time, TZFILE_TIMES_MAX);
	const unsigned char *times = take(r, n->time * 8), *indexes = take(r, n->time), *types = take(r, n->type * 6);
	if (!times || !indexes || !types || !take(r, n->chars + n->isstd + n->isutc))
		return fail(r, "is cut short", e);
	int32_t offsets[TYPES_MAX] = {0};
	for (size_t i = 0; i < n->type; i++) {
		int64_t offset_s = big_endian(types + 6 * i, 4);
		if (offset_s < -TZ_OFFSET_MAX_S || offset_s > TZ_OFFSET_MAX_S)
			return fail(r, "is more than 26 hours off UTC", e);
		offsets[i] = (int32_t)offset_s;
	}
	b->first_offset_s = offsets[0];
	for (size_t i = 0; i < n->time; i++) {
		if (indexes[i] >= n->type)
			return fail(r, "names a local time type that it does not have", e);
		if (i > 0 && big_endian(times + 8 * i, 8) <= big_endian(times + 8 * i - 8, 8))
			return fail(r, "has transitions that do not rise", e);
		put(b, big_endian(times + 8 * i, 8), offsets[indexes[i]]);
	}
	return 0;
}

// "\n<rule>\n"; an empty rule: nothing is known after the last transition.
static int read_rule(struct reader *r, struct building *b, struct err *e)
{
	const unsigned char *p = take(r, 1);
	const unsigned char *end = p && *p == '\n' ? memchr(r->p, '\n', r->left) : NULL;
	size_t len = end ? (size_t)(end - r->p) : 0;
	if (!end || len > RULE_BYTES_MAX || memchr(r->p, '\0', len))
		return fail(r, "has no rule at its end", e);
	if (len == 0)
		return 0;
	char rule[RULE_BYTES_MAX + 1];
	memcpy(rule, r->p, len);
	rule[len] = '\0';
	int64_t at_s[RULE_TIMES_MAX];
	int32_t offset_s[RULE_TIMES_MAX], first_offset_s;
	int n = tzfile_rule(rule, TZFILE_FIRST_YEAR, at_s, offset_s, RULE_TIMES_MAX, &first_offset_s);
	if (n < 0)
		return fail(r, "has a rule at its end that cannot be read", e);
	if (b->n == 0 && n == 0)
		b->first_offset_s = first_offset_s;
	int64_t after_s = b->n > 0 ? b->at_s[b->n - 1] : INT64_MIN;
	for (int i = 0; i < n; i++)
		if (at_s[i] > after_s)
			put(b, at_s[i], offset_s[i]);
	return 0;
}

static int keep(const struct reader *r, const struct building *b, struct arena *a, struct tz_table *ret, struct err *e)
{
	int64_t *at_s = arena_calloc(a, b->n, sizeof *at_s);
	int32_t *offset_s = arena_calloc(a, b->n, sizeof *offset_s);
	if (!at_s || !offset_s)
		return err_set(e, ERR_INTERNAL, "time zone file %s: out of memory", r->name);
	if (b->n > 0) {
		memcpy(at_s, b->at_s, b->n * sizeof *at_s);
		memcpy(offset_s, b->offset_s, b->n * sizeof *offset_s);
	}
	*ret = (struct tz_table){at_s, offset_s, b->n, b->first_offset_s};
	return 0;
}

int tzfile_parse(const char *name, const void *data, size_t len, struct arena *a, struct tz_table *ret, struct err *e)
{
	struct reader r = {name, data, len};
	struct counts n;
	if (len > TZFILE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "time zone file %s has more than the ceiling of %d bytes", name,
		               TZFILE_BYTES_MAX);
	if (read_header(&r, &n, e) < 0)
		return -1;
	if (n.version < '2')
		return fail(&r, "is of version 1, with 32-bit times: install a current tzdata", e);
	// The block for readers of version 1 comes first.
	if (!take(&r, body_bytes(&n, 4)))
		return fail(&r, "is cut short", e);
	struct building b = {.n = 0};
	if (read_header(&r, &n, e) < 0 || read_body(&r, &n, &b, e) < 0 || read_rule(&r, &b, e) < 0)
		return -1;
	return keep(&r, &b, a, ret, e);
}

// ---- finding and reading it ----

#define NAMES_MAX   2048 // considered for did-you-mean
#define NAMES_DEPTH 3
#define PATH_BYTES  512
#define SHOWN_BYTES 80

// Letters, digits, '_', '-', '+', in parts between single slashes: what can be a name, and cannot leave the folder.
static bool is_zone_name(const char *s)
{
	size_t len = strnlen(s, TZFILE_NAME_BYTES_MAX + 1);
	if (len == 0 || len > TZFILE_NAME_BYTES_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = s[i];
		bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
		            c == '-' || c == '+';
		bool slash = c == '/' && i > 0 && i + 1 < len && s[i - 1] != '/';
		if (!word && !slash)
			return false;
	}
	return true;
}

struct name_list {
	char *names[NAMES_MAX];
	size_t n;
};

// Zones begin with a capital letter; what does not (posix, right, tables) is none.
static void list_names(struct name_list *l, const char *dir)
{
	char *roots[] = {strdup(dir), NULL};
	FTS *tree = roots[0] ? fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL) : NULL;
	for (FTSENT *f; tree && l->n < NAMES_MAX && (f = fts_read(tree));) {
		bool is_zone = f->fts_level == 0 || (f->fts_name[0] >= 'A' && f->fts_name[0] <= 'Z');
		const char *name = f->fts_path + strlen(dir);
		if (!is_zone || f->fts_level > NAMES_DEPTH)
			fts_set(tree, f, FTS_SKIP);
		else if (f->fts_info == FTS_F && (l->names[l->n] = strdup(name + strspn(name, "/"))))
			l->n++;
	}
	if (tree)
		fts_close(tree);
	free(roots[0]);
}

static int fail_unknown(const char *dir, const char *name, struct err *e)
{
	struct name_list *l = calloc(1, sizeof *l);
	if (!l)
		return err_no_memory(e);
	list_names(l, dir);
	const char *close = num_closest_name(name, (const char *const *)l->names, l->n);
	char shown[SHOWN_BYTES];
	text_show(shown, sizeof shown, name, strlen(name));
	if (close)
		err_set(e, ERR_NOT_FOUND, "unknown time zone \"%s\", did you mean %s?", shown, close);
	else if (l->n == 0)
		err_set(e, ERR_NOT_FOUND,
		        "time zone \"%s\" is not known here: there is no time zone database in %s (package tzdata)",
		        shown, dir);
	else
		err_set(e, ERR_NOT_FOUND, "unknown time zone \"%s\": write it as in Europe/Zurich, or UTC", shown);
	for (size_t i = 0; i < l->n; i++)
		free(l->names[i]);
	free(l);
	return -1;
}

static int read_file(const char *path, struct buf *data, struct err *e)
{
	struct err why;
	int fd = file_open(path, &why);
	if (fd < 0 && why.kind == ERR_INPUT) // a folder of zones, or not a regular file
		return err_set(e, ERR_NOT_FOUND, "%s", why.msg);
	if (fd < 0)
		return err_set_code(e, why.code == ENOTDIR ? ERR_NOT_FOUND : why.kind, why.code, "cannot read %s: %s",
		                    path, strerror(why.code));
	return buf_read_opened(data, fd, path, e);
}

int tzfile_load(const char *dir, const char *name, struct arena *a, struct tz_table *ret, struct err *e)
{
	*ret = (struct tz_table){0};
	if (strcmp(name, "UTC") == 0)
		return 0;
	const char *from_env = getenv("TZDIR");
	if (!dir)
		dir = from_env && from_env[0] ? from_env : TZFILE_DIR;
	if (!is_zone_name(name)) {
		char shown[SHOWN_BYTES];
		text_show(shown, sizeof shown, name, strlen(name));
		return err_set(e, ERR_INPUT,
		               "\"%s\" is not the name of a time zone: write it as in Europe/Zurich, or UTC", shown);
	}
	char path[PATH_BYTES];
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= PATH_BYTES)
		return err_set(e, ERR_LIMIT, "the path of time zone %s has more than the ceiling of %d bytes", name,
		               PATH_BYTES);
	struct buf data;
	struct err why;
	buf_init(&data, TZFILE_BYTES_MAX);
	err_clear(&why);
	int rc = read_file(path, &data, &why);
	if (rc < 0 && why.kind == ERR_NOT_FOUND)
		fail_unknown(dir, name, e);
	else if (rc == 0 || why.kind == ERR_LIMIT)
		rc = tzfile_parse(name, buf_str(&data), rc < 0 ? TZFILE_BYTES_MAX + 1 : data.len, a, ret, e);
	else if (e)
		*e = why;
	buf_done(&data);
	return rc;
}
