// SPDX-License-Identifier: Apache-2.0
#include "base/series_notation.h"

#include <math.h>

#include "base/arena.h"
#include "base/base.h"

#define ERROR_WITH "error:"

// "a+bxn" taken apart. times counts the points it stands for.
struct run {
	enum series_point_kind kind;
	double start, delta;
	const char *detail; // not terminated
	size_t detail_len;
	int64_t times;
};

// The x of a trailing count. Only "error:" may be followed by a text with an x of its own.
static const char *find_count(const char *word, size_t len)
{
	if (len < strlen(ERROR_WITH) || memcmp(word, ERROR_WITH, strlen(ERROR_WITH)) != 0)
		return memchr(word, 'x', len);
	size_t digits = 0;
	while (word[len - 1 - digits] >= '0' && word[len - 1 - digits] <= '9')
		digits++;
	const char *x = word + len - 1 - digits;
	return digits > 0 && *x == 'x' ? x : NULL;
}

// Reads a word that is not a number: "_", "stale", "error" or "error:TEXT". Returns false for any other word.
static bool parse_name(const char *word, size_t head, struct run *r)
{
	static const struct {
		const char *word;
		enum series_point_kind kind;
	} names[] = {{"_", SERIES_POINT_MISSING}, {"stale", SERIES_POINT_STALE}, {"error", SERIES_POINT_ERROR}};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (head == strlen(names[i].word) && memcmp(word, names[i].word, head) == 0) {
			r->kind = names[i].kind;
			return true;
		}
	}
	if (head <= strlen(ERROR_WITH) || memcmp(word, ERROR_WITH, strlen(ERROR_WITH)) != 0)
		return false;
	r->kind = SERIES_POINT_ERROR;
	r->detail = word + strlen(ERROR_WITH);
	r->detail_len = head - strlen(ERROR_WITH);
	return true;
}

static int parse_run(const char *word, size_t len, struct run *r, struct err *e)
{
	*r = (struct run){.kind = SERIES_POINT_VALUE, .times = 1};
	const char *x = find_count(word, len);
	size_t head = x ? (size_t)(x - word) : len;
	if (x && num_parse_i64(x + 1, len - head - 1, 0, SERIES_NOTATION_POINTS_MAX, &r->times, e) < 0)
		return err_wrap(e, "after 'x' in \"%.*s\"", (int)len, word);
	if (parse_name(word, head, r))
		return 0;
	if (x)
		r->times++;
	// The sign between a and b: not the first character, not one that belongs to an exponent.
	size_t sign = 0;
	for (size_t i = 1; i < head && !sign; i++)
		if ((word[i] == '+' || word[i] == '-') && word[i - 1] != 'e' && word[i - 1] != 'E')
			sign = i;
	if (num_parse_sample(word, sign ? sign : head, &r->start, e) < 0)
		return err_wrap(e, "in \"%.*s\"", (int)len, word);
	if (!sign)
		return 0;
	if (!x)
		return err_set(e, ERR_INPUT, "\"%.*s\" has a step but no count: write \"%.*sx10\" for 10 more values",
		               (int)len, word, (int)len, word);
	if (num_parse_f64(word + sign + 1, head - sign - 1, &r->delta, e) < 0)
		return err_wrap(e, "in \"%.*s\"", (int)len, word);
	if (word[sign] == '-')
		r->delta = -r->delta;
	return 0;
}

// Counts the points of the text, and writes them when points is not NULL: called twice, to count and to fill.
static int walk(struct arena *a, const char *text, struct series_point *points, size_t *ret_n, struct err *e)
{
	size_t n = 0;
	for (const char *p = text; *p;) {
		p += strspn(p, " \t\r\n");
		size_t len = strcspn(p, " \t\r\n");
		if (!len)
			break;
		struct run r;
		if (parse_run(p, len, &r, e) < 0)
			return -1;
		if (n + (size_t)r.times > SERIES_NOTATION_POINTS_MAX)
			return err_set(e, ERR_LIMIT, "the series has more than the ceiling of %d values",
			               SERIES_NOTATION_POINTS_MAX);
		const char *detail = points && r.detail ? arena_strndup(a, r.detail, r.detail_len) : NULL;
		if (points && r.detail && !detail)
			return err_set(e, ERR_LIMIT, "the series does not fit into the memory allowed");
		for (int64_t i = 0; points && i < r.times; i++) {
			double v = i == 0 ? r.start : r.start + r.delta * (double)i;
			if (isfinite(r.start) && !isfinite(v))
				return err_set(e, ERR_INPUT, "\"%.*s\" leaves the range of a number", (int)len, p);
			points[n + (size_t)i] =
			        (struct series_point){r.kind, r.kind == SERIES_POINT_VALUE ? v : 0, detail};
		}
		n += (size_t)r.times;
		p += len;
	}
	*ret_n = n;
	return 0;
}

int series_notation_parse(struct arena *a, const char *text, struct series_point **ret_points, size_t *ret_n,
                          struct err *e)
{
	size_t n;
	if (walk(a, text, NULL, &n, e) < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_INPUT, "the series is empty: write values such as '0+10x9 90x20'");
	*ret_points = arena_calloc(a, n, sizeof **ret_points);
	if (!*ret_points)
		return err_set(e, ERR_LIMIT, "a series of %zu values does not fit into the memory allowed", n);
	return walk(a, text, *ret_points, ret_n, e);
}
